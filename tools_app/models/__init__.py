"""Models of the app, one file each."""

from tools_app.models.mcp_server import McpServer
from tools_app.models.mcp_server_version import McpServerVersion

__all__ = ["McpServer", "McpServerVersion"]
