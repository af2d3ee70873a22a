"""The agents that can run, as the published client reads them: by id, with what each of them uses."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from agents_app.configuration.references import find_entry, processor_key
from agents_app.registry import Kind
from runs_app.resolution import ResolvedAgent

AgentBody = dict[str, Any]


# What the client reads of every agent and no agent here has.
UNSUPPORTED_FIELDS: AgentBody = {
    "modelVersion": "v2",
    "modelList": None,
    "defaultGenerateOptionsLegacy": {},
    "defaultStreamOptionsLegacy": {},
    "skills": [],
    "workspaceTools": [],
    "browserTools": [],
    "hasBrowser": False,
}


def agent_body(agent: ResolvedAgent, *, partial: bool = False) -> AgentBody:
    """An agent as its configuration has it; `partial` leaves out the schemas of its tools."""
    said = agent.configuration
    model = said["model"]
    return {
        "id": agent.id,
        "name": agent.name,
        "description": agent.description,
        "instructions": said.get("instructions") or "",
        "provider": model["provider"],
        "modelId": model["name"],
        "tools": entry_bodies(Kind.TOOL, said.get("tools"), partial)
        | integration_tool_bodies(said.get("integrationTools")),
        "workflows": entry_bodies(Kind.WORKFLOW, said.get("workflows"), partial),
        "agents": {key: {"id": key, "name": entry_name(Kind.AGENT, key)} for key in said.get("agents") or []},
        "inputProcessors": processor_bodies(said.get("inputProcessors")),
        "outputProcessors": processor_bodies(said.get("outputProcessors")),
        "supportsMemory": bool(said.get("memory")),
        "defaultOptions": said.get("defaultOptions") or {},
        "metadata": said.get("metadata") or {},
        **UNSUPPORTED_FIELDS,
        "source": agent.source,
        "status": "draft" if agent.target == "draft" else "published",
        "resolvedVersionId": agent.version_id,
        "resolvedVersionNumber": agent.version_number,
    }


def entry_bodies(kind: Kind, keys: Iterable[str] | None, partial: bool) -> dict[str, AgentBody]:
    """Registered things by key; what nothing registered is left out, as it is left out of the run."""
    found = {key: find_entry(kind, key) for key in keys or []}
    return {
        key: {
            "id": key,
            "name": entry.title,
            "description": entry.description,
            **({} if partial else {"inputSchema": entry.schema}),
        }
        for key, entry in found.items()
        if entry is not None
    }


def integration_tool_bodies(keys: Iterable[str] | None) -> dict[str, AgentBody]:
    known = [key for key in keys or [] if find_entry(Kind.INTEGRATION_PROVIDER, key) is not None]
    return {key: {"id": key, "name": key, "description": ""} for key in known}


def entry_name(kind: Kind, key: str) -> str:
    entry = find_entry(kind, key)
    return entry.title if entry else key


def processor_bodies(given: Iterable[Mapping[str, Any]] | None) -> list[AgentBody]:
    keys = [processor_key(each) for each in given or []]
    return [{"id": key, "name": entry_name(Kind.PROCESSOR, key)} for key in keys if isinstance(key, str)]
