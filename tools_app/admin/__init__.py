"""The admin pages of this app."""

from tools_app.admin import mcp_servers

__all__ = ["mcp_servers"]
