"""The ACP agent that an API request names. Only superusers see them; to everybody else they do not exist."""

from __future__ import annotations

from django.db.models import QuerySet
from rest_framework.request import Request

from access_app.permissions import has_role_everywhere
from access_app.role import Role
from agentcms.api.etags import allows_change
from agentcms.errors import NotFound, PreconditionFailed
from agentcms.wire.timestamps import format_timestamp
from tools_app.api.representation import record_etag
from tools_app.models import AcpAgent


def require_superuser(request: Request) -> None:
    """Raise NotFound unless the user is a superuser whose key may manage everything."""
    if not has_role_everywhere(request.user, Role.MANAGER):
        raise NotFound("There is nothing at this address.")


def get_acp_agent(request: Request, key: str) -> AcpAgent:
    """Return an ACP agent. Raise NotFound for all users but superusers."""
    return find_or_raise(request, AcpAgent.objects.all(), key)


def lock_acp_agent(request: Request, key: str) -> AcpAgent:
    """Lock an ACP agent for a change, inside a transaction.

    Raise NotFound for all users but superusers, and PreconditionFailed if `If-Match` names another state.
    """
    row = find_or_raise(request, AcpAgent.objects.select_for_update(), key)
    if not allows_change(request, record_etag(row)):
        message = f"The ACP agent '{row.title}' was changed at {format_timestamp(row.updated_at)}. Read it again."
        raise PreconditionFailed(message, record_etag(row))
    return row


def find_or_raise(request: Request, rows: QuerySet[AcpAgent], key: str) -> AcpAgent:
    require_superuser(request)
    row = rows.filter(key=key).first()
    if row is None:
        raise NotFound(f"ACP agent with id {key} not found")
    return row
