"""MCP servers and their tools in the API document: operations, descriptions and examples."""

from __future__ import annotations

from agentcms.openapi.operations import MCP_CLIENT, MCP_SERVER, MCP_TOOL, PAGING, Operation
from agentcms.openapi.section import ApiSection
from agentcms.openapi.tools.mcp_schemas import MCP_FIELDS, mcp_schemas
from agentcms.wire.json_types import JSONObject
from agents_app.configuration.schema import as_partial
from tools_app.api.schemas import McpClientBody

MCP_VERSION = f"{MCP_CLIENT}/versions/{{number}}"
MCP_OPERATIONS = (
    Operation(
        "get",
        "/api/stored/mcp-clients",
        "listMcpClients",
        "List MCP servers with their configuration",
        "McpClientPage",
        query=(*PAGING, "ownerId", "strict"),
    ),
    Operation(
        "post",
        "/api/stored/mcp-clients",
        "createMcpClient",
        "Add an MCP server",
        "McpClient",
        "McpClientCreate",
        query=("strict",),
        status=201,
        errors=(409, 422),
    ),
    Operation("get", MCP_CLIENT, "getMcpClient", "Get an MCP server with its configuration", "McpClient"),
    Operation(
        "patch",
        MCP_CLIENT,
        "updateMcpClient",
        "Change an MCP server",
        "McpClient",
        "McpClientChange",
        query=("strict",),
        errors=(412, 422),
    ),
    Operation("delete", MCP_CLIENT, "deleteMcpClient", "Delete an MCP server", "Done", errors=(412,)),
    Operation(
        "get",
        f"{MCP_CLIENT}/dependents",
        "listMcpClientDependents",
        "List the agents that use an MCP server",
        "Dependents",
    ),
    Operation(
        "get",
        f"{MCP_CLIENT}/versions",
        "listMcpClientVersions",
        "List the versions of an MCP server",
        "McpClientVersionPage",
        query=(*PAGING, "strict"),
    ),
    Operation("get", MCP_VERSION, "getMcpClientVersion", "Get a version of an MCP server", "McpClientVersion"),
    Operation(
        "post",
        f"{MCP_VERSION}/restore",
        "restoreMcpClientVersion",
        "Restore a version of an MCP server",
        "McpClient",
        errors=(412,),
    ),
    Operation(
        "get",
        "/api/mcp/v0/servers",
        "listMcpServers",
        "List the enabled MCP servers",
        "McpServers",
        query=("limit", "offset", *PAGING, "strict"),
    ),
    Operation(
        "get",
        "/api/mcp/v0/servers/{serverId}",
        "getMcpServer",
        "Get an MCP server",
        "McpServer",
        query=("version", "strict"),
    ),
    Operation("get", f"{MCP_SERVER}/tools", "listMcpTools", "List the tools of an MCP server", "McpTools"),
    Operation("get", MCP_TOOL, "getMcpTool", "Get a tool with its schema", "McpTool"),
    Operation(
        "post",
        f"{MCP_TOOL}/execute",
        "executeMcpTool",
        "Call a tool",
        "McpResult",
        "McpCall",
        query=("strict",),
        errors=(409, 424),
    ),
    Operation(
        "post",
        f"{MCP_TOOL}/accept",
        "acceptMcpTool",
        "Accept the changed definition of a tool",
        "McpClient",
        "McpAccept",
        errors=(422,),
    ),
    Operation(
        "post", f"{MCP_SERVER}/refresh", "refreshMcpServer", "List the tools of an MCP server again", "Job", status=202
    ),
    Operation(
        "get",
        f"{MCP_SERVER}/resources",
        "listMcpResources",
        "Not supported: list resources",
        "Anything",
        errors=(501,),
    ),
    Operation(
        "post",
        f"{MCP_SERVER}/resources/read",
        "readMcpResource",
        "Not supported: read a resource",
        "Anything",
        errors=(501,),
    ),
)
MCP_DESCRIPTIONS: dict[str, str] = {
    "listMcpClients": "Those of your teams and the shared ones, without the values of headers.",
    "createMcpClient": "A job lists its tools. Commands are not taken from a request: send a key of MCP_COMMANDS.",
    "getMcpClient": "Without the values of headers. Send If-None-Match to get a 304 while nothing changed.",
    "updateMcpClient": "Send the headers again, or null, if the address changes. If-Match is optional."
    " A warning names the agents that lose its tools by a move to another team.",
    "deleteMcpClient": "Agents that use its tools run without them. The message has their number.",
    "listMcpClientDependents": "Those whose live version or draft names one of its tools.",
    "listMcpClientVersions": "Newest first, without the values of headers.",
    "getMcpClientVersion": "Without the values of headers.",
    "restoreMcpClientVersion": "Makes a new version. The stored headers are deleted if the address changes.",
    "listMcpServers": "In the form of the registry protocol of MCP.",
    "getMcpServer": "In the form of the registry protocol of MCP.",
    "listMcpTools": "As the server listed them last. No request is sent to the server.",
    "getMcpTool": "With the difference from the accepted definition, if it changed.",
    "executeMcpTool": "Only tools that need no approval, and whose definition is accepted. Limits of runs apply.",
    "acceptMcpTool": "Agents get the tool with its new definition.",
    "refreshMcpServer": "Starts a job. Its result names what was added, removed and changed.",
    "listMcpResources": "Resources of MCP servers are not supported.",
    "readMcpResource": "Resources of MCP servers are not supported.",
}
VERSION_NUMBER: JSONObject = {"number": {"description": "The number of a version of the server.", "example": "1"}}
MCP_PARAMETERS: dict[str, dict[str, JSONObject]] = {
    "getMcpClientVersion": VERSION_NUMBER,
    "restoreMcpClientVersion": VERSION_NUMBER,
    "getMcpServer": {"version": {"description": "Answers with 404 if another version is in use.", "example": "1"}},
}
MCP_EXAMPLES: dict[str, JSONObject] = {
    "createMcpClient": {
        "name": "Office",
        "ownerId": "",
        "servers": {"office": {"type": "http", "url": "https://mcp.example.org/mcp"}},
    },
    "updateMcpClient": {"enabled": False},
    "executeMcpTool": {"data": {"query": "opening hours"}},
    "acceptMcpTool": {"hash": "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"},
}


MCP_SECTION = ApiSection(
    MCP_OPERATIONS,
    {"": "MCP servers"},
    mcp_schemas,
    bodies={"McpClientCreate": McpClientBody, "McpClientChange": as_partial(McpClientBody)},
    descriptions=MCP_DESCRIPTIONS,
    own_parameters=MCP_PARAMETERS,
    page_sizes={"listMcpClientVersions": 20},
    examples=MCP_EXAMPLES,
    fields=MCP_FIELDS,
)
