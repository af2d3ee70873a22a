"""The table of MCP servers, which each process caches for a second."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple

from django.core.exceptions import ValidationError
from django.db import transaction

from access_app.caller import Caller
from agentcms.db.cached_table import CachedTable
from agentcms.errors import NotFound
from tools_app.mcp.definitions import Definition, changed_names
from tools_app.models import McpServer
from tools_app.programs.commands import MCP_COMMANDS


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
    accepted_for_all: frozenset[str] = field(repr=False, default=frozenset())

    @property
    def is_available(self) -> bool:
        return not self.reason


class Definitions(NamedTuple):
    """The definitions of a server, as the row of a time has them."""

    updated_at: datetime
    tools: Mapping[str, Definition]
    accepted: Mapping[str, Definition]
    accepted_for_all: frozenset[str]

    @classmethod
    def from_row(cls, row: McpServer) -> Definitions:
        return cls(row.updated_at, row.definitions, row.accepted_definitions, row.tools_accepted_for_all)

    @property
    def changed(self) -> list[str]:
        """The names of the tools whose definition differs from the accepted one."""
        return changed_names(self.tools, self.accepted)


def revision_of(row: McpServer) -> str:
    return f"{row.pk} {row.updated_at.isoformat()}"


def server_from_row(row: McpServer, definitions: Definitions | None = None) -> Server:
    """Return a server with its decrypted headers. Without `definitions`, they are read from the row."""
    headers, definitions = row.headers, definitions or Definitions.from_row(row)
    return Server(
        key=row.key,
        title=row.title,
        owner_id=row.owner_id,
        transport=row.transport,
        url=row.url,
        command_key=row.command_key,
        connect_timeout=row.connect_timeout,
        call_timeout=row.call_timeout,
        prefix=row.prefix or row.key,
        always_asks=row.approval == McpServer.Approval.ALWAYS,
        revision=revision_of(row),
        reason=server_unavailable_reason(row, headers),
        headers=headers or {},
        tools=definitions.tools,
        accepted=definitions.accepted,
        accepted_for_all=definitions.accepted_for_all,
    )


def server_unavailable_reason(row: McpServer, headers: Mapping[str, str] | None) -> str:
    """Return why a server cannot be used, or a blank text."""
    if not row.is_enabled:
        return f"The MCP server '{row.title}' is disabled."
    if headers is None:
        return (
            f"The headers of the MCP server '{row.title}' were encrypted with another PROVIDER_KEY_SECRET. "
            "Enter them again."
        )
    if row.transport == McpServer.Transport.STDIO:
        try:
            MCP_COMMANDS.get(row.command_key).require_sandbox()
        except ValidationError as error:
            return " ".join(error.messages)
    return ""


def lock_server(server_id: int, user: Caller | None = None) -> McpServer:
    """Lock a server inside a transaction.

    Raise NotFound if it was deleted meanwhile, or moved to a team whose servers the user may not change. Without
    `user`, nobody's role is checked.
    """
    row = McpServer.objects.select_for_update().filter(pk=server_id).first()
    if row is None or (user is not None and not row.editable_by(user)):
        raise NotFound("The MCP server was deleted meanwhile, or moved to another team.")
    return row


def switch_server(server_id: int, is_enabled: bool, user: Caller | None = None) -> tuple[McpServer, str]:
    """Enable or disable a server.

    Return it with the reason why it cannot be enabled, or a blank text. Raise NotFound, as `lock_server` does.
    """
    with transaction.atomic():
        row = lock_server(server_id, user)  # a job may be storing its tools
        row.is_enabled = is_enabled
        reason = server_unavailable_reason(row, row.headers) if row.is_enabled else ""
        if not reason:
            row.save()
    return row, reason


class ServerReader:
    """Reads all servers. Their definitions are large, and only read again after a server was changed."""

    def __init__(self) -> None:
        self.definitions: Mapping[int, Definitions] = {}  # by primary key

    def read(self) -> dict[str, Server]:
        known, rows = self.definitions, list(McpServer.objects.without_definitions())
        changed = [row.pk for row in rows if row.pk not in known or known[row.pk].updated_at != row.updated_at]
        fresh = McpServer.objects.in_bulk(changed) if changed else {}
        # Without a server that was deleted between the two queries.
        rows = [fresh.get(row.pk, row) for row in rows if row.pk in fresh or row.pk not in changed]
        definitions = {row.pk: Definitions.from_row(row) if row.pk in fresh else known[row.pk] for row in rows}
        self.definitions = definitions
        return {row.key: server_from_row(row, definitions[row.pk]) for row in rows}


load_servers = ServerReader().read
server_table = CachedTable(load_servers, lambda server: f"{server.revision} {server.reason}")


def definitions_of(row: McpServer) -> Definitions:
    """Return the definitions of a row. Lists leave them out of their query: this process usually has them."""
    server = server_table.find(row.key)
    if server is not None and server.revision == revision_of(row):
        return Definitions(row.updated_at, server.tools, server.accepted, server.accepted_for_all)
    return Definitions.from_row(row)
