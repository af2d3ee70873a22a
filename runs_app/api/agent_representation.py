"""Representation of running agents in the API, as the published client expects it."""

from __future__ import annotations

import json
from collections.abc import Iterable

from agentcms.wire.json_types import JSONMapping, JSONObject
from agents_app.configuration.references import find_entry, processor_key
from agents_app.registry import Kind
from runs_app.resolution import ResolvedAgent

AgentBody = JSONObject


# The client expects these fields. This application has no such features.
UNSUPPORTED_FIELDS: AgentBody = {
    "modelVersion": "v2",
    "defaultGenerateOptionsLegacy": {},
    "defaultStreamOptionsLegacy": {},
    "skills": [],
    "workspaceTools": [],
    "browserTools": [],
    "hasBrowser": False,
}


def agent_body(agent: ResolvedAgent, *, partial: bool = False) -> AgentBody:
    """Return the body of an agent. `partial` leaves out the schemas of its tools."""
    snapshot, model = agent.configuration, agent.configuration["model"]
    return {
        "id": agent.id,
        "name": agent.name,
        "description": agent.description,
        "instructions": snapshot.get("instructions") or "",
        "provider": model["provider"],
        "modelId": model["name"],
        "tools": entry_bodies(Kind.TOOL, snapshot.get("tools"), partial)
        | integration_tool_bodies(snapshot.get("integrationTools")),
        "workflows": entry_bodies(Kind.WORKFLOW, snapshot.get("workflows"), partial),
        "agents": {key: {"id": key, "name": entry_name(Kind.AGENT, key)} for key in snapshot.get("agents") or []},
        "inputProcessors": processor_bodies(snapshot.get("inputProcessors")),
        "outputProcessors": processor_bodies(snapshot.get("outputProcessors")),
        "supportsMemory": bool(snapshot.get("memory")),
        "defaultOptions": snapshot.get("defaultOptions") or {},
        "metadata": snapshot.get("metadata") or {},
        **variables_body(snapshot.get("requestContextSchema")),
        **UNSUPPORTED_FIELDS,
        "source": agent.source,
        "status": "draft" if agent.target == "draft" else "published",
        "resolvedVersionId": agent.version_id,
        "resolvedVersionNumber": agent.version_number,
    }


def variables_body(schema: JSONMapping | None) -> AgentBody:
    """Return the declared variables, if any."""
    return {"requestContextSchema": schema_text(schema)} if schema else {}


def schema_text(schema: JSONMapping) -> str:
    """Return a JSON Schema as the client expects it: as a text in the form of superjson."""
    return json.dumps({"json": schema}, ensure_ascii=False)


def entry_bodies(kind: Kind, keys: Iterable[str] | None, partial: bool) -> dict[str, AgentBody]:
    """Return the bodies of registered entries by key. Others are left out, as in a run."""
    registered = {key: find_entry(kind, key) for key in keys or []}
    return {
        key: {
            "id": key,
            "name": entry.title,
            "description": entry.description,
            **({} if partial else {"inputSchema": schema_text(entry.schema)}),
        }
        for key, entry in registered.items()
        if entry is not None
    }


def integration_tool_bodies(keys: Iterable[str] | None) -> dict[str, AgentBody]:
    registered = [key for key in keys or [] if find_entry(Kind.INTEGRATION_PROVIDER, key) is not None]
    return {key: {"id": key, "name": key, "description": ""} for key in registered}


def entry_name(kind: Kind, key: str) -> str:
    entry = find_entry(kind, key)
    return entry.title if entry else key


def processor_bodies(processors: Iterable[JSONMapping] | None) -> list[AgentBody]:
    keys = [processor_key(processor) for processor in processors or []]
    return [{"id": key, "name": entry_name(Kind.PROCESSOR, key)} for key in keys if isinstance(key, str)]
