"""Lookups for the API views of MCP servers."""

from __future__ import annotations

from rest_framework.request import Request

from access_app.permissions import SHARED_OWNER, has_role, has_role_everywhere, owner_ids_for
from access_app.role import Role, RoleRequired
from agentcms.errors import NotFound
from tools_app.mcp.definitions import Definition
from tools_app.models import McpServer


def get_server(request: Request, key: str) -> McpServer:
    """Return a server that the user may see. Raise NotFound for any other."""
    row = McpServer.objects.for_user(request.user).filter(key=key).first()
    if row is None:
        raise NotFound(f"MCP server with id {key} not found")
    return row


def get_changeable_server(request: Request, key: str) -> McpServer:
    """Return a server that the user may change. Raise NotFound and RoleRequired."""
    row = get_server(request, key)
    require_manager(request, row)
    return row


def require_manager(request: Request, row: McpServer) -> None:
    """Raise RoleRequired unless the user may change a server."""
    if not row.editable_by(request.user):
        hint = "Only members of staff change shared servers." if row.owner_id == SHARED_OWNER else ""
        raise RoleRequired(Role.MANAGER, row.owner_id, hint)


def require_editor(request: Request, row: McpServer) -> None:
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
