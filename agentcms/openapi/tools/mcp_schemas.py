"""The schemas of MCP servers and their tools, with the descriptions of their fields."""

from __future__ import annotations

from agentcms.openapi.json_schema import (
    ANY,
    BOOLEAN,
    DATE_TIME,
    INTEGER,
    OBJECT,
    STRING,
    array_of,
    nullable,
    object_of,
    page_of,
    ref,
    with_optional_warnings,
)
from agentcms.wire.json_types import JSONObject
from agents_app.editing.change_context import Source
from tools_app.models import McpServer

MCP_FIELDS: dict[str, str] = {
    "McpCall.data": "The arguments of the tool.",
    "McpClient.description": "What the server is for.",
    "McpClient.id": "The ID of the server.",
    "McpClient.name": "The name of the server.",
    "McpClient.status": "Always published: a change is live at once.",
    "McpClientCreate.description": "What the server is for.",
    "McpClientCreate.id": "The ID of the server.",
    "McpClientCreate.name": "The name of the server.",
    "McpResult.result": "What the tool returned.",
    "McpServer.description": "What the server is for.",
    "McpServer.id": "The ID of the server.",
    "McpServer.name": "The name of the server.",
    "McpServers.description": "What the server is for.",
    "McpServers.id": "The ID of the server.",
    "McpServers.name": "The name of the server.",
    "McpTool.description": "What the tool is for.",
    "McpTool.id": "The name of the tool on its server.",
    "McpTool.name": "The name of the tool.",
    "McpTools.tools": "The tools, in the order in which the server lists them.",
    "after": "The value now.",
    "annotations": "What the server says of the effects of the tool.",
    "approval": "Which tools need approval: those that change something, or always.",
    "before": "The accepted value.",
    "changedTools": "The tools whose changed definitions nobody has accepted.",
    "commandKey": "A key of MCP_COMMANDS, for a program.",
    "connectTimeout": "How long connecting and listing may take, in milliseconds.",
    "differences": "What changed since the definition was accepted.",
    "enabled": "Whether agents can use the server.",
    "hash": "The hash of the definition.",
    "headers": "The headers of each request. Their values are written, but never read.",
    "isAccepted": "Whether agents get this definition.",
    "is_latest": "Always true.",
    "listError": "Why the last listing failed, or what it left out.",
    "listedAt": "When the server listed its tools.",
    "next": "The address of the next page. Null on the last.",
    "part": "The part of the definition that changed.",
    "prefix": "Begins the names of the tools for models. Blank: the ID.",
    "release_date": "When it was changed.",
    "servers": "The MCP server, by its ID. A client has one.",
    "timeout": "How long a call may take, in milliseconds.",
    "toolCount": "How many tools the server listed.",
    "total_count": "How many servers there are.",
    "url": "The URL of the server, without a query.",
    "version": "The number of the version.",
    "version_detail": "The version of the configuration.",
    "McpClientChange.id": "The ID of the server.",
    "McpClientChange.name": "The name of the server.",
    "McpClientChange.description": "What the server is for.",
    "McpClientPage.id": "The ID of the server.",
    "McpClientPage.name": "The name of the server.",
    "McpClientPage.description": "What the server is for.",
}


def mcp_schemas() -> dict[str, JSONObject]:
    return {
        "McpClient": with_optional_warnings(client_schema()),
        "McpClientPage": page_of("mcpClients", "McpClient"),
        "McpClientVersion": object_of(
            versionNumber=INTEGER,
            snapshot=OBJECT,
            author=nullable(STRING),
            source={"enum": Source.values},
            createdAt=DATE_TIME,
        ),
        "McpClientVersionPage": page_of("versions", "McpClientVersion"),
        "McpServer": with_optional_warnings(server_schema()),
        # In snake case, as in the registry protocol of MCP.
        "McpServers": with_optional_warnings(
            object_of(servers=array_of(ref("McpServer")), total_count=INTEGER, next=nullable(STRING))
        ),
        "McpTool": tool_object_schema(),
        "McpTools": object_of(tools=array_of(ref("McpTool"))),
        "McpCall": {"type": "object", "properties": {"data": OBJECT}},
        "McpResult": object_of(result=ANY),
        "McpAccept": object_of(hash=STRING),
    }


def client_schema() -> JSONObject:
    return object_of(
        id=STRING,
        name=STRING,
        description=STRING,
        ownerId=STRING,
        status={"enum": ["published"]},
        servers={"type": "object", "additionalProperties": OBJECT},
        prefix=STRING,
        approval={"enum": McpServer.Approval.values},
        enabled=BOOLEAN,
        toolCount=INTEGER,
        changedTools=array_of(STRING),
        listedAt=nullable(DATE_TIME),
        listError=nullable(STRING),
        versionNumber=INTEGER,
        createdAt=DATE_TIME,
        updatedAt=DATE_TIME,
    )


def server_schema() -> JSONObject:
    detail = object_of(version=STRING, release_date=DATE_TIME, is_latest=BOOLEAN)
    return object_of(id=STRING, name=STRING, description=STRING, version_detail=detail)


def tool_object_schema() -> JSONObject:
    return object_of(
        id=STRING,
        name=STRING,
        description=STRING,
        inputSchema=OBJECT,
        annotations=OBJECT,
        hash=STRING,
        isAccepted=BOOLEAN,
        differences=array_of(object_of(part=STRING, before=ANY, after=ANY)),
    )
