"""The limit of MCP servers of each team."""

from __future__ import annotations

from django.conf import settings

from access_app.quotas import require_team_quota
from tools_app.models import McpServer


def require_server_quota(owner_id: str) -> None:
    """Raise ApiError if a team has as many MCP servers as it may have. Call it as `require_team_quota`."""
    most = settings.MCP_SERVERS_PER_TEAM
    require_team_quota(McpServer.objects.all(), owner_id, most, "MCP servers", "mcp_server_quota_exceeded")
