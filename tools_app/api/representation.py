"""MCP servers and their tools in the API."""

from __future__ import annotations

from agentcms.wire.canonical import sha256_hex
from agentcms.wire.json_types import JSONObject
from tools_app.mcp.cached_servers import definitions_of
from tools_app.mcp.definitions import Definition, find_differences
from tools_app.models import AcpAgent, AcpAgentVersion, McpServer, McpServerVersion
from tools_app.programs.environment import MASK


def record_etag(row: McpServer | AcpAgent) -> str:
    """Return the ETag of a record, which changes with its configuration, and with the list of its tools."""
    return f'"{row.pk}.{row.updated_at:%Y%m%d%H%M%S%f}"'


def client_etag(row: McpServer) -> str:
    """Return the ETag of a stored MCP client, which also changes with the failure to list its tools."""
    if not row.list_error:
        return record_etag(row)
    # A failure is not a change of the row, whose time is the key of its open connections.
    return f'{record_etag(row)[:-1]}.{sha256_hex(row.list_error)[:8]}"'


def client_body(row: McpServer) -> JSONObject:
    """Return a stored MCP client: the configuration of a server, without the values of its headers."""
    definitions = definitions_of(row)
    return {
        "id": row.key,
        "name": row.title,
        "description": row.description,
        "ownerId": row.owner_id,
        "status": "published",  # the client expects it; each change is live at once
        "servers": {row.key: server_body(row)},
        "prefix": row.prefix,
        "approval": row.approval,
        "enabled": row.is_enabled,
        "toolCount": len(definitions.tools),
        "changedTools": definitions.changed,
        "listedAt": row.listed_at,
        "listError": row.list_error or None,
        "versionNumber": row.last_version_number,
        "createdAt": row.created_at,
        "updatedAt": row.updated_at,
    }


def server_body(row: McpServer) -> JSONObject:
    is_program = row.transport == McpServer.Transport.STDIO
    return {
        "type": row.transport,
        **({"commandKey": row.command_key} if is_program else {"url": row.url}),
        "timeout": row.call_timeout * 1000,
        "connectTimeout": row.connect_timeout * 1000,
        "headers": dict.fromkeys(row.header_names, MASK),
    }


def version_body(version: McpServerVersion | AcpAgentVersion) -> JSONObject:
    return {
        "versionNumber": version.version_number,
        "snapshot": version.snapshot,
        "author": version.author_name or None,
        "source": version.source,
        "createdAt": version.created_at,
    }


def directory_entry(row: McpServer) -> JSONObject:
    """Return a server as the registry protocol of MCP lists it."""
    return {
        "id": row.key,
        "name": row.title,
        "description": row.description,
        "version_detail": {
            "version": str(row.last_version_number),
            "release_date": row.updated_at,
            "is_latest": True,
        },
    }


def tool_body(definition: Definition, accepted: Definition | None) -> JSONObject:
    """Return a tool with its schema, and the difference from the accepted definition."""
    differences = find_differences(accepted, definition) if accepted else []
    return {
        "id": definition.name,
        "name": definition.title or definition.name,
        "description": definition.description,
        "inputSchema": dict(definition.schema),
        "annotations": dict(definition.annotations),
        "hash": definition.hash,
        "isAccepted": not differences,
        "differences": [item._asdict() for item in differences],
    }


def acp_agent_body(row: AcpAgent) -> dict[str, object]:
    """Return an ACP agent without the values of its environment."""
    limits = row.all_limits
    return {
        "id": row.key,
        "title": row.title,
        "description": row.description,
        "commandKey": row.command_key,
        "env": dict.fromkeys(row.environment_names, MASK),
        "authMethodId": row.auth_method_id or None,
        "persistSession": row.persists_session,
        "permissions": row.permissions,
        "limits": row.limits if limits is None else limits.model_dump(by_alias=True),
        "model": row.model or None,
        "workspace": row.workspace or None,
        "enabled": row.is_enabled,
        "versionNumber": row.last_version_number,
        "createdAt": row.created_at,
        "updatedAt": row.updated_at,
    }
