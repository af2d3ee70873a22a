"""Schemas of the bodies about MCP servers."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Annotated, Literal

from django.core.exceptions import ValidationError
from pydantic import BaseModel, Field
from rest_framework.request import Request

from agentcms.api.parsers import json_object_body
from agentcms.errors import Unprocessable
from agentcms.wire.json_types import JSONObject
from agentcms.wire.names import printable_key
from agentcms.wire.unknown_names import UnknownName, find_unknown_names
from agents_app.api.strict_requests import checking_names, known_keys
from agents_app.configuration.fields.programs import COMMAND_MEMBERS, COMMAND_NOT_ALLOWED
from agents_app.configuration.fields.types import Name, OwnerId
from agents_app.configuration.row_issues import adding_issues_of_row, reject_issues
from agents_app.configuration.schema import WIRE_CONFIG, Issue, as_partial, validate_fields
from tools_app.models import McpServer
from tools_app.models.mcp_server import MAX_TIMEOUT
from tools_app.programs.environment import with_stored_values

MCP_COMMAND_MESSAGE = "Commands are not taken from a request. Send commandKey, a key of MCP_COMMANDS."
Milliseconds = Annotated[int, Field(ge=1000, le=MAX_TIMEOUT * 1000)]


class ServerBody(BaseModel):
    """The connection to a server. Times are in milliseconds; headers are written but never read."""

    model_config = WIRE_CONFIG

    type: Literal["http", "stdio"]
    url: str | None = None
    command_key: str | None = None
    timeout: Milliseconds | None = None
    connect_timeout: Milliseconds | None = None
    headers: dict[str, str] | None = None


class McpClientBody(BaseModel):
    """A stored MCP client, which has one server. The key of the server is its ID."""

    model_config = WIRE_CONFIG

    name: Name
    servers: Annotated[dict[str, ServerBody], Field(min_length=1, max_length=1)]
    id: str | None = None
    description: str | None = None
    owner_id: OwnerId | None = None
    prefix: Annotated[str, Field(max_length=40)] | None = None
    approval: Literal["changes", "always"] | None = None
    enabled: bool | None = None


def reject_mcp_commands(body: JSONObject) -> None:
    """Raise Unprocessable for a body that names a program."""
    servers = body.get("servers")
    parts = [body, *(servers.values() if isinstance(servers, dict) else ())]
    if any(isinstance(part, dict) and COMMAND_MEMBERS & part.keys() for part in parts):
        raise Unprocessable(MCP_COMMAND_MESSAGE, COMMAND_NOT_ALLOWED)


CLIENT_CHANGE = as_partial(McpClientBody)
# In a response with a client, which a caller may send back as it was read.
READ_ONLY_CLIENT_KEYS = (
    *("status", "toolCount", "changedTools", "listedAt", "listError", "versionNumber", "createdAt", "updatedAt"),
    "warnings",
)


def read_client(
    request: Request, model: type[BaseModel], row: McpServer | None = None
) -> tuple[JSONObject, Sequence[UnknownName]]:
    """Return the fields of a body, and the unknown names of the request, also of a server in it.

    `row` is the server that the request changes. Raise BadRequest, ConfigError and Unprocessable.
    """
    body = json_object_body(request)
    reject_mcp_commands(body)
    with (
        checking_names(request, body, model, silent=READ_ONLY_CLIENT_KEYS, inside=unknown_in_servers(body)) as names,
        adding_issues_of_row(model, body, partial(client_issues, request, row)),
    ):
        fields = validate_fields(model, body)
    return fields, names.unknown


def client_issues(request: Request, row: McpServer | None, fields: JSONObject) -> list[Issue]:
    """Return what is wrong with a server that has these fields, for those who may change it."""
    if row is None:
        row = McpServer(key=next(iter(fields.get("servers") or {"new": {}})), owner_id=fields.get("owner_id") or "")
    if not row.editable_by(request.user):
        return []
    issues = apply_client(row, fields)
    return [*issues, *other_server_issues(fields, row)]


def unknown_in_servers(body: JSONObject) -> list[UnknownName]:
    """Return the unknown members of the first server of a body. A valid one has no other."""
    servers = body.get("servers")
    key, server = next(iter(servers.items()), ("", None)) if isinstance(servers, dict) else ("", None)
    if not isinstance(server, dict):
        return []
    return find_unknown_names(server, known_keys(ServerBody), f"servers.{printable_key(key)}")


def other_server_issues(fields: JSONObject, row: McpServer) -> list[Issue]:
    """Return what is wrong if a body has another ID or another server than its row."""
    issues = []
    if row.pk is None and fields.get("id") not in (None, row.key):
        message = f"The server must have the ID of the client: '{fields['id']}'."
        issues.append(Issue(f"servers.{row.key}", message))
    if fields.get("servers") is not None and list(fields["servers"]) != [row.key]:
        issues.append(Issue("servers", f"Send one server with the ID '{row.key}'."))
    return issues


def change_client(row: McpServer, fields: JSONObject) -> None:
    """Set the fields of a body on a row and validate it. Raise BadRequest."""
    reject_issues([*other_server_issues(fields, row), *apply_client(row, fields)])


def apply_client(row: McpServer, fields: JSONObject) -> list[Issue]:
    """Set the fields of a body on a row. Return what is wrong with it."""
    for name, column in (("name", "title"), ("enabled", "is_enabled"), ("approval", "approval")):
        if fields.get(name) is not None:
            setattr(row, column, fields[name])
    for name in ("description", "prefix", "owner_id"):
        if name in fields:
            setattr(row, name, fields[name] or "")
    issues: list[Issue] = []
    if server := (fields.get("servers") or {}).get(row.key):
        issues += apply_server(row, server)
    try:
        row.full_clean()
    except ValidationError as error:
        paths = wire_paths(row.key)
        issues += [
            Issue(paths.get(name, name), message) for name, texts in error.message_dict.items() for message in texts
        ]
    return issues


def apply_server(row: McpServer, server: JSONObject) -> list[Issue]:
    """Set how a server is reached. Return what is wrong with its headers."""
    before = row.address
    row.transport, row.url = server["type"], server.get("url") or ""
    row.command_key = server.get("commandKey") or ""
    if server.get("timeout") is not None:
        # The column has seconds, the protocol milliseconds.
        row.call_timeout = server["timeout"] // 1000
    if server.get("connectTimeout") is not None:
        row.connect_timeout = server["connectTimeout"] // 1000
    path = f"servers.{row.key}.headers"
    if "headers" not in server:
        is_moved = bool(row.encrypted_headers) and before != row.address
        # Otherwise a user could read the stored headers by sending them to a server of their own.
        message = "The address changed. Send the headers again, or null to delete the stored ones."
        return [Issue(path, message)] if is_moved else []
    try:
        stored = row.headers if before == row.address else {}
        row.set_headers(with_stored_values(server["headers"] or {}, stored))
    except ValidationError as error:
        return [Issue(path, " ".join(error.messages))]
    return []


def wire_paths(key: str) -> dict[str, str]:
    """Return the path of each column in a body."""
    server = f"servers.{key}"
    return {
        "key": "id",
        "title": "name",
        "is_enabled": "enabled",
        "owner_id": "ownerId",
        "transport": f"{server}.type",
        "url": f"{server}.url",
        "command_key": f"{server}.commandKey",
        "call_timeout": f"{server}.timeout",
        "connect_timeout": f"{server}.connectTimeout",
    }
