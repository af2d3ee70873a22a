"""Names of the tools of an agent, as models see them."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator

from agentcms.wire.json_types import JSONMapping
from agents_app.configuration.knowledge import KNOWLEDGE, usable_bases
from agents_app.configuration.mcp_clients import MCP_CLIENTS, usable_entries
from agents_app.configuration.memory.options import parse_memory_options
from agents_app.configuration.references import FIELD_KINDS, find_entry

OUTPUT_TOOL = "structured_output"  # the model calls it with an answer that is an object
WORKING_MEMORY_TOOL = "updateWorkingMemory"  # as the published protocol names it
MAX_TOOL_NAME_LENGTH = 64  # the shortest limit of a provider
# Prefixes of tool names, by field of the configuration.
TOOL_PREFIXES = {"tools": "", "integrationTools": "", "workflows": "workflow-", "agents": "agent-"}


def tool_name(key: str) -> str:
    """Return a key as a tool name that every provider accepts. Changed names get a digest, to stay unique."""
    name = re.sub(r"[^a-zA-Z0-9_-]", "_", key)
    if name == key != OUTPUT_TOOL and len(key) <= MAX_TOOL_NAME_LENGTH and re.match("[a-zA-Z_]", key):
        return key
    digest = hashlib.sha256(key.encode()).hexdigest()[:8]
    start = name if re.match("[a-zA-Z_]", name) else f"_{name}"
    return f"{start[: MAX_TOOL_NAME_LENGTH - 9]}_{digest}"


def tool_names(configuration: JSONMapping, owner_id: str) -> Iterator[str]:
    """Yield the tool names of a configuration of this owner. Unregistered references get no tool."""
    for field, prefix in TOOL_PREFIXES.items():
        for key in configuration.get(field) or []:
            if field == "agents" or find_entry(FIELD_KINDS[field], key) is not None:  # a sub-agent may be stored
                yield tool_name(f"{prefix}{key}")
    memory = parse_memory_options(configuration.get("memory"))
    if memory is not None and memory.working is not None:
        yield WORKING_MEMORY_TOOL
    outside = (
        *usable_entries(configuration.get(MCP_CLIENTS), owner_id),
        *usable_bases(configuration.get(KNOWLEDGE), owner_id),
    )
    for _, entry in outside:
        if not isinstance(entry, str):
            yield tool_name(entry.tool_name)
