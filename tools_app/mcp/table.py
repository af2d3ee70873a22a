"""The table of MCP servers, which each process caches for a second."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field

from cachetools import TTLCache

from agentcms.cache import SizeLimitedCache
from tools_app.mcp.definitions import Definition
from tools_app.models import McpServer

CACHE_SECONDS = 1.0  # for which a process caches the table


@dataclass(frozen=True)
class Server:
    """An MCP server with its connection data, or with the reason why it cannot be used."""

    key: str
    title: str
    owner_id: str
    transport: str
    url: str
    command_key: str
    connect_timeout: int  # seconds
    call_timeout: int
    prefix: str
    always_asks: bool  # whether every call needs approval
    revision: str  # changes with each change of the row
    reason: str  # a message for users if it cannot be used
    headers: Mapping[str, str] = field(repr=False, default_factory=dict)
    tools: Mapping[str, Definition] = field(repr=False, default_factory=dict)
    accepted: Mapping[str, Definition] = field(repr=False, default_factory=dict)

    @property
    def is_available(self) -> bool:
        return not self.reason


def server_from_row(row: McpServer) -> Server:
    """Return a server with its decrypted headers."""
    headers = row.headers
    return Server(
        row.key,
        row.title,
        row.owner_id,
        row.transport,
        row.url,
        row.command_key,
        row.connect_timeout,
        row.call_timeout,
        row.prefix or row.key,
        row.approval == McpServer.Approval.ALWAYS,
        f"{row.pk} {row.updated_at.isoformat()}",
        unavailable_reason(row, headers),
        headers or {},
        row.definitions,
        row.accepted_definitions,
    )


def unavailable_reason(row: McpServer, headers: Mapping[str, str] | None) -> str:
    """Return why a server cannot be used, or a blank text."""
    if not row.is_enabled:
        return f"The MCP server '{row.title}' is disabled."
    if headers is None:
        return (
            f"The headers of the MCP server '{row.title}' were encrypted with another PROVIDER_KEY_SECRET. "
            "Enter them again."
        )
    return ""


@dataclass(frozen=True)
class ServerTable:
    """All servers by key. `revision` changes whenever any of them changes."""

    servers: Mapping[str, Server]
    revision: str


def load_table() -> ServerTable:
    rows = list(McpServer.objects.all())
    servers = {row.key: server_from_row(row) for row in rows}
    revisions = "\n".join(server.revision for server in servers.values())
    return ServerTable(servers, hashlib.sha256(revisions.encode()).hexdigest()[:12])


_tables: SizeLimitedCache[str, ServerTable] = SizeLimitedCache(TTLCache(1, CACHE_SECONDS))


def get_table() -> ServerTable:
    """Return the table, which is at most a second old."""
    return _tables.get_or_create("table", load_table)


def get_server(key: str) -> Server | None:
    return get_table().servers.get(key)


def revision() -> str:
    return get_table().revision


def invalidate() -> None:
    """Remove the table from the cache of this process."""
    _tables.clear()
