"""The versions of MCP servers, and how an earlier one is restored."""

from __future__ import annotations

from typing import NamedTuple

from agentcms.errors import NotFound
from agentcms.ids import parse_whole_number
from tools_app.models import McpServer, McpServerVersion

# The column of each member of a snapshot. The values of headers are in no snapshot.
SERVER_SNAPSHOT_COLUMNS = {
    "name": "title",
    "description": "description",
    "transport": "transport",
    "url": "url",
    "commandKey": "command_key",
    "connectTimeout": "connect_timeout",
    "callTimeout": "call_timeout",
    "prefix": "prefix",
    "approval": "approval",
    "enabled": "is_enabled",
}


class Restored(NamedTuple):
    """A restored server. If its address changed, its headers were deleted, and it may list other tools."""

    server: McpServer
    needs_listing: bool
    deleted_headers: list[str]


def get_server_version(server: McpServer, number: int | str) -> McpServerVersion:
    """Return a version of a server. Raise NotFound."""
    version = server.versions.filter(version_number=parse_whole_number(str(number))).first()
    if version is None:
        raise NotFound(f"Version {number} of MCP server {server.key} not found")
    return version


def restore_server_version(server: McpServer, version: McpServerVersion) -> Restored:
    """Give a locked server the configuration of an earlier version, as a new version.

    Stored headers stay unless the address changes: they were entered for another one. Raise ValidationError by field
    if the configuration is no longer valid.
    """
    address, names, was_enabled = server.address, list(server.header_names), server.is_enabled
    server.read_snapshot(version.snapshot, SERVER_SNAPSHOT_COLUMNS)
    is_moved = server.address != address
    if is_moved:
        server.set_headers({})
    server.save_restored()
    needs_listing = server.is_enabled and (is_moved or not was_enabled)
    return Restored(server, needs_listing, names if is_moved else [])
