"""The schemas of MCP servers and their tools."""

from __future__ import annotations

from agentcms.openapi.json_schema import (
    ANY,
    BOOLEAN,
    DATE_TIME,
    INTEGER,
    JSON,
    OBJECT,
    STRING,
    array_of,
    nullable,
    object_of,
    page_of,
    ref,
    with_optional_warnings,
)
from agents_app.editing.change_context import Source
from tools_app.models import McpServer


def mcp_schemas() -> dict[str, JSON]:
    return {
        "McpClient": client_schema(),
        "McpClientPage": page_of("mcpClients", "McpClient"),
        "McpClientVersion": object_of(
            versionNumber=INTEGER,
            snapshot=OBJECT,
            author=nullable(STRING),
            source={"enum": Source.values},
            createdAt=DATE_TIME,
        ),
        "McpClientVersionPage": page_of("versions", "McpClientVersion"),
        "McpServer": server_schema(),
        "McpServers": with_optional_warnings(
            object_of(servers=array_of(ref("McpServer")), total_count=INTEGER, next=nullable(STRING))
        ),
        "McpTool": tool_schema(),
        "McpTools": object_of(tools=array_of(ref("McpTool"))),
        "McpCall": {"type": "object", "properties": {"data": OBJECT}},
        "McpResult": object_of(result=ANY),
        "McpAccept": object_of(hash=STRING),
    }


def client_schema() -> JSON:
    return object_of(
        id=STRING,
        name=STRING,
        description=STRING,
        ownerId=STRING,
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


def server_schema() -> JSON:
    detail = object_of(version=STRING, release_date=DATE_TIME, is_latest=BOOLEAN)
    return object_of(id=STRING, name=STRING, description=STRING, version_detail=detail)


def tool_schema() -> JSON:
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
