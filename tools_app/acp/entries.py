"""The registry entries of ACP agents: each as a tool, and as a sub-agent."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from cachetools import LRUCache

from agentcms.cache import SizeLimitedCache
from agents_app.configuration.acp_agents import ACP_PREFIX
from agents_app.registry import Entry, Kind
from tools_app.acp.cached_agents import AcpRecord, acp_table

TASK_SCHEMA = {
    "type": "object",
    "properties": {"task": {"type": "string", "description": "The task, with all that the agent needs to know."}},
    "required": ["task"],
    "additionalProperties": False,
}
# Only those of the latest revision: no reader asks for an earlier one again.
_entries: SizeLimitedCache[str, Mapping[str, Entry]] = SizeLimitedCache(LRUCache(1))


def acp_entries() -> Mapping[str, Entry]:
    """Return the ACP agents by the key that agents name."""
    table = acp_table.get()
    return _entries.get_or_create(table.revision, lambda: build_acp_entries(table.records.values()))


def build_acp_entries(records: Iterable[AcpRecord]) -> dict[str, Entry]:
    entries = [build_acp_entry(record) for record in records]
    return {entry.key: entry for entry in entries}


def build_acp_entry(record: AcpRecord) -> Entry:
    key = f"{ACP_PREFIX}{record.key}"
    return Entry(
        Kind.ACP_AGENT,
        key,
        record.title,
        record.description,
        schema=TASK_SCHEMA,
        target=record.key,
        source="staff",
        make=make_acp_tool,
        make_agent=make_agent,
        tool_name=key,
        unavailable_reason=record.reason,
    )


def make_acp_tool(key: str, entry: Entry) -> object:
    """Build the tool of an entry. Imports pydantic-ai, which is heavy."""
    from tools_app.acp.tool import acp_tool

    return acp_tool(key, entry)


def make_agent(entry: Entry) -> object:
    """Build the agent of a child run. Imports pydantic-ai, which is heavy."""
    from tools_app.acp.sub_agent import build_sub_agent

    return build_sub_agent(entry)
