"""The context of the admin page of an MCP server besides its form: its tools and its versions."""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

from tools_app.mcp.accepted_definitions import Definition, DefinitionDifference, find_differences
from tools_app.mcp.versions import changed_members
from tools_app.models import McpServer, McpServerVersion

MAX_VERSIONS = 20


class ListedTool(NamedTuple):
    """A tool of a server. It is gone if the server no longer lists it."""

    name: str
    item: Definition
    is_gone: bool
    differences: list[DefinitionDifference]


class ServerVersionRow(NamedTuple):
    """A version with what it changed, and whether it can be restored."""

    version: McpServerVersion
    changed: list[str]
    is_current: bool


def server_tool_rows(row: McpServer) -> list[ListedTool]:
    """Return the tools of a server, with what changed in each."""
    listed, accepted = row.definitions, row.accepted_definitions
    rows = []
    for name in sorted({*listed, *accepted}):
        item, before = listed.get(name), accepted.get(name)
        differences = find_differences(before, item) if item and before and item.hash != before.hash else []
        rows.append(ListedTool(name, item or accepted[name], item is None, differences))
    return rows


def server_version_rows(row: McpServer) -> list[ServerVersionRow]:
    """Return the newest versions of a server."""
    # One more than is listed: it shows what the last one changed.
    versions: list[McpServerVersion | None] = [*row.versions.all()[: MAX_VERSIONS + 1]]
    pairs = pairwise([*versions, None] if len(versions) <= MAX_VERSIONS else versions)
    return [
        ServerVersionRow(version, changed_members(version, before), version.version_number == row.last_version_number)
        for version, before in pairs
        if version is not None
    ]
