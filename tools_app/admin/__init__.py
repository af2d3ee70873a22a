"""The admin pages of this app."""

from tools_app.admin import acp_agents, mcp_servers

__all__ = ["acp_agents", "mcp_servers"]
