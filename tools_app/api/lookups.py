"""Lookups for the API views of MCP servers."""

from __future__ import annotations

from rest_framework.request import Request

from access_app.permissions import SHARED_OWNER, has_role, has_role_everywhere, owner_ids_for
from access_app.role import Role, RoleRequired
from agentcms.api.etags import allows_change, named_etags
from agentcms.errors import NotFound, PreconditionFailed
from agentcms.wire.timestamps import format_timestamp
from agents_app.api.required_role import note_required_role
from tools_app.api.representation import client_etag, record_etag
from tools_app.mcp.definitions import Definition
from tools_app.models import McpServer


def get_server(request: Request, key: str) -> McpServer:
    """Return a server that the user may see. Raise NotFound for any other."""
    row = McpServer.objects.for_user(request.user).filter(key=key).first()
    if row is None:
        raise server_not_found(key)
    return row


def server_not_found(key: str) -> NotFound:
    """Return the same error for a server that does not exist and for one that the caller may not see."""
    return NotFound(f"MCP server with id {key} not found")


def get_changeable_server(request: Request, key: str) -> McpServer:
    """Return a server that the user may change. Raise NotFound and RoleRequired."""
    row = get_server(request, key)
    require_manager(request, row)
    return row


def lock_changeable_server(request: Request, key: str) -> McpServer:
    """Lock a server for a change, inside a transaction.

    Raise NotFound and RoleRequired, and PreconditionFailed if `If-Match` names another state.
    """
    row = McpServer.objects.for_user(request.user).select_for_update(of=("self",)).filter(key=key).first()
    if row is None:
        raise server_not_found(key)
    require_manager(request, row)
    if not allows_server_change(request, row):
        message = f"The MCP server '{row.title}' was changed at {format_timestamp(row.updated_at)}. Read it again."
        raise PreconditionFailed(message, client_etag(row))
    return row


def allows_server_change(request: Request, row: McpServer) -> bool:
    """Return whether `If-Match` allows a change of a server. The part about a failure to list its tools is ignored."""
    state = record_etag(row)
    # A failure is nothing that a change could undo, whether it came, or became another one, since the server was read.
    with_failure = state.strip('"') + "."
    tags = named_etags(request.META.get("HTTP_IF_MATCH", ""))
    return allows_change(request, state) or any(tag.startswith(with_failure) for tag in tags)


def require_manager(request: Request, row: McpServer) -> None:
    """Raise RoleRequired unless the user may change a server."""
    if not row.editable_by(request.user):
        hint = "Only members of staff change shared servers." if row.owner_id == SHARED_OWNER else ""
        raise RoleRequired(Role.MANAGER, row.owner_id, hint)
    note_required_role(Role.MANAGER, row.owner_id)


def require_tool_caller(request: Request, row: McpServer) -> None:
    """Raise RoleRequired unless the user may call the tools of a server: editors of its team, or of any if shared."""
    user = request.user
    if row.owner_id == SHARED_OWNER:
        is_editor = has_role_everywhere(user, Role.EDITOR) or owner_ids_for(user, Role.EDITOR).exists()
    else:
        is_editor = has_role(user, Role.EDITOR, row.owner_id)
    if not is_editor:
        raise RoleRequired(Role.EDITOR, row.owner_id)


def get_definition(row: McpServer, name: str) -> Definition:
    """Return a tool that a server lists. Raise NotFound."""
    definition = row.definitions.get(name)
    if definition is None:
        raise NotFound(f"Tool with id {name} not found on MCP server {row.key}")
    return definition
