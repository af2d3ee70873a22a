"""URLs of the API of MCP servers and ACP agents."""

from django.urls import path

from tools_app.api import acp_agents, acp_versions, client_versions, clients, servers

CLIENT_PATH = "stored/mcp-clients/<str:server_id>"
CLIENT_VERSION_PATH = f"{CLIENT_PATH}/versions/<str:number>"
SERVER_PATH = "mcp/<str:server_id>"
TOOL_PATH = f"{SERVER_PATH}/tools/<str:tool_id>"
ACP_AGENT_PATH = "stored/acp-agents/<str:acp_id>"
ACP_VERSION_PATH = f"{ACP_AGENT_PATH}/versions/<str:number>"

urlpatterns = [
    path("stored/mcp-clients", clients.ClientsView.as_view(), name="api-mcp-clients"),
    path(CLIENT_PATH, clients.ClientView.as_view(), name="api-mcp-client"),
    path(f"{CLIENT_PATH}/dependents", clients.ClientDependentsView.as_view(), name="api-mcp-client-dependents"),
    path(f"{CLIENT_PATH}/versions", client_versions.ClientVersionsView.as_view(), name="api-mcp-client-versions"),
    path(CLIENT_VERSION_PATH, client_versions.ClientVersionView.as_view(), name="api-mcp-client-version"),
    path(f"{CLIENT_VERSION_PATH}/restore", client_versions.ClientRestoreView.as_view(), name="api-mcp-client-restore"),
    path("mcp/v0/servers", servers.ServersView.as_view(), name="api-mcp-servers"),
    path("mcp/v0/servers/<str:server_id>", servers.ServerView.as_view(), name="api-mcp-server"),
    path(f"{SERVER_PATH}/tools", servers.ToolsView.as_view(), name="api-mcp-tools"),
    path(TOOL_PATH, servers.ToolView.as_view(), name="api-mcp-tool"),
    path(f"{TOOL_PATH}/execute", servers.ExecuteView.as_view(), name="api-mcp-execute"),
    path(f"{TOOL_PATH}/accept", servers.AcceptView.as_view(), name="api-mcp-accept"),
    path(f"{SERVER_PATH}/refresh", servers.RefreshView.as_view(), name="api-mcp-refresh"),
    path(f"{SERVER_PATH}/resources", servers.ResourcesView.as_view(), name="api-mcp-resources"),
    path(f"{SERVER_PATH}/resources/read", servers.ResourceView.as_view(), name="api-mcp-resource"),
    path("stored/acp-agents", acp_agents.AcpAgentsView.as_view(), name="api-acp-agents"),
    path(ACP_AGENT_PATH, acp_agents.AcpAgentView.as_view(), name="api-acp-agent"),
    path(f"{ACP_AGENT_PATH}/versions", acp_versions.AcpAgentVersionsView.as_view(), name="api-acp-agent-versions"),
    path(ACP_VERSION_PATH, acp_versions.AcpAgentVersionView.as_view(), name="api-acp-agent-version"),
    path(f"{ACP_VERSION_PATH}/restore", acp_versions.AcpAgentRestoreView.as_view(), name="api-acp-agent-restore"),
]
