"""The table of MCP servers, which each process caches for a second."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from django.core.exceptions import ValidationError
from django.db import transaction

from agentcms.db.cached_table import CachedTable
from tools_app.mcp.accepted_definitions import Definition
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
        server_unavailable_reason(row, headers),
        headers or {},
        row.definitions,
        row.accepted_definitions,
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


def switch_server(server_id: int, is_enabled: bool | None = None) -> tuple[McpServer, str]:
    """Enable or disable a server. Without `is_enabled`, it gets the other state.

    Return it with the reason why it cannot be enabled, or a blank text.
    """
    with transaction.atomic():
        row = McpServer.objects.select_for_update().get(pk=server_id)  # a job may be storing its tools
        row.is_enabled = not row.is_enabled if is_enabled is None else is_enabled
        reason = server_unavailable_reason(row, row.headers) if row.is_enabled else ""
        if not reason:
            row.save()
    return row, reason


def load_servers() -> dict[str, Server]:
    return {row.key: server_from_row(row) for row in McpServer.objects.all()}


server_table = CachedTable(load_servers, lambda server: f"{server.revision} {server.reason}")
