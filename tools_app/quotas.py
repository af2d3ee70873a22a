"""The limit of MCP servers of each team."""

from __future__ import annotations

from django.conf import settings

from access_app.role import SHARED_LABEL
from agentcms.db.locks import lock_name
from agentcms.errors import ApiError
from tools_app.models import McpServer


def require_server_quota(owner_id: str) -> None:
    """Raise ApiError if a team has as many MCP servers as it may have.

    Call it in the transaction that stores the server: other servers of the team wait for its end.
    """
    lock_name(f"MCP servers of {owner_id}")
    most = settings.MCP_SERVERS_PER_TEAM
    if McpServer.objects.filter(owner_id=owner_id).count() >= most:
        message = (
            f"{owner_id or SHARED_LABEL} has {most:,} MCP servers, as many as a team may have. Delete one that you no "
            "longer need, or ask the operator to raise the limit."
        )
        raise ApiError(429, message, "mcp_server_quota_exceeded")
