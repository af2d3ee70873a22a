"""The registry entries of the tools of MCP servers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from cachetools import LRUCache

from agentcms.cache import SizeLimitedCache
from agents_app.registry import Entry, Kind
from tools_app.mcp.cached_servers import Server, server_table
from tools_app.mcp.definitions import RESOURCE_TOOL, Definition, DefinitionDifference, find_differences

# Only those of the latest revision: no reader asks for an earlier one again.
_entries: SizeLimitedCache[str, Mapping[str, Entry]] = SizeLimitedCache(LRUCache(1))


def mcp_entries() -> Mapping[str, Entry]:
    """Return the tools of all servers by key."""
    table = server_table.get()
    return _entries.get_or_create(table.revision, lambda: build_mcp_entries(table.records.values()))


def build_mcp_entries(servers: Iterable[Server]) -> dict[str, Entry]:
    return {entry.key: entry for server in servers for entry in tool_entries(server)}


def tool_entries(server: Server) -> Iterator[Entry]:
    """Yield a registry entry for each tool that the server listed, or that agents were allowed to use."""
    for name, definition in sorted({**server.accepted, **server.tools}.items()):
        listed, accepted = server.tools.get(name), server.accepted.get(name)
        yield Entry(
            Kind.MCP_TOOL,
            tool_key(server.key, name),
            definition.title or name,
            definition.description,
            schema=definition.sent_schema,
            requires_approval=server.always_asks or definition.changes_something,
            target=(server.key, name, definition.annotations),
            source="staff",
            make=make_mcp_tool,
            owner_id=server.owner_id,
            server_title=server.title,
            tool_name=f"{server.prefix}_{name}",
            definition_hash=listed.hash if listed else "",
            accepted_hash=accepted.hash if accepted else "",
            is_accepted_for_all=name in server.accepted_for_all,
            is_opt_in=definition.hash == RESOURCE_TOOL.hash,
            differences=differences_from(accepted, listed),
            unavailable_reason=server.reason or missing_reason(server, name),
        )


def differences_from(accepted: Definition | None, listed: Definition | None) -> tuple[DefinitionDifference, ...]:
    """Return what a server changed in a tool since its definition was accepted."""
    if accepted is None or listed is None or accepted.hash == listed.hash:
        return ()
    return (*find_differences(accepted, listed),)


def missing_reason(server: Server, name: str) -> str:
    """Return that a tool is gone, or a blank text."""
    return "" if name in server.tools else f"The MCP server '{server.title}' no longer has the tool '{name}'."


def tool_key(server_key: str, name: str) -> str:
    """Return the registry key of a tool. The key of a server contains no underscore."""
    return f"{server_key}_{name}"


def make_mcp_tool(key: str, entry: Entry) -> object:
    """Build the tool of an entry. Imports pydantic-ai, which is heavy."""
    from tools_app.mcp.tools import mcp_tool

    return mcp_tool(key, entry)
