"""The ACP agents that an agent uses: keys with a prefix, among its tools and its sub-agents."""

from __future__ import annotations

from agentcms.wire.json_types import JSONMapping
from agents_app.registry import Entry, Kind, registry

ACP_PREFIX = "acp-"
ACP_KINDS = (Kind.TOOL, Kind.AGENT)  # the kinds of the fields that may name one


def find_acp_entry(kind: Kind, key: str) -> Entry | None:
    """Return the entry of the ACP agent that a field of this kind names, or None."""
    return registry.find_staff_entry(Kind.ACP_AGENT, key) if is_acp_key(kind, key) else None


def is_acp_key(kind: Kind, key: str) -> bool:
    """Return whether a key in a field of this kind names an ACP agent, unless code registers it."""
    return kind in ACP_KINDS and key.startswith(ACP_PREFIX)


def acp_problem(kind: Kind, key: str) -> str:
    """Return why an ACP agent cannot be used now, or a blank text."""
    entry = find_acp_entry(kind, key) if registry.get(kind, key) is None else None
    return entry.unavailable_reason if entry is not None else ""


def names_acp_agent(configuration: JSONMapping) -> bool:
    """Return whether a configuration uses an ACP agent."""
    keys = [*(configuration.get("tools") or ()), *(configuration.get("agents") or ())]
    return any(str(key).startswith(ACP_PREFIX) for key in keys)
