"""The context of the admin page of an MCP server besides its form: its tools."""

from __future__ import annotations

from typing import NamedTuple

from tools_app.mcp.definitions import Definition, DefinitionDifference, find_differences
from tools_app.models import McpServer


class ListedTool(NamedTuple):
    """A tool of a server. It is gone if the server no longer lists it."""

    name: str
    item: Definition
    is_gone: bool
    differences: list[DefinitionDifference]


def server_tool_rows(row: McpServer) -> list[ListedTool]:
    """Return the tools of a server, with what changed in each."""
    listed, accepted = row.definitions, row.accepted_definitions
    rows = []
    for name in sorted({*listed, *accepted}):
        item, before = listed.get(name), accepted.get(name)
        differences = find_differences(before, item) if item and before and item.hash != before.hash else []
        rows.append(ListedTool(name, item or accepted[name], item is None, differences))
    return rows
