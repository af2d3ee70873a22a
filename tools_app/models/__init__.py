"""Models of the app, one file each."""

from tools_app.models.acp_agent import AcpAgent
from tools_app.models.acp_agent_version import AcpAgentVersion
from tools_app.models.acp_permission import AcpPermission
from tools_app.models.acp_session import AcpPrompt, AcpSession
from tools_app.models.acp_workspace import AcpWorkspace
from tools_app.models.mcp_server import McpServer
from tools_app.models.mcp_server_version import McpServerVersion

__all__ = [
    "AcpAgent",
    "AcpAgentVersion",
    "AcpPermission",
    "AcpPrompt",
    "AcpSession",
    "AcpWorkspace",
    "McpServer",
    "McpServerVersion",
]
