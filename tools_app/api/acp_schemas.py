"""Schemas of the bodies about ACP agents."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal

from django.core.exceptions import ValidationError
from pydantic import BaseModel, Field
from rest_framework.request import Request

from agentcms.api.parsers import json_object_body
from agentcms.errors import Unprocessable
from agentcms.wire.json_types import JSONObject
from agentcms.wire.unknown_names import UnknownName
from agents_app.api.strict_requests import read_named_fields
from agents_app.configuration.fields.programs import COMMAND_MEMBERS, COMMAND_NOT_ALLOWED
from agents_app.configuration.fields.types import Name
from agents_app.configuration.row_issues import reject_issues
from agents_app.configuration.schema import WIRE_CONFIG, Issue, as_partial
from tools_app.acp.limits import Limits
from tools_app.models import AcpAgent
from tools_app.programs.environment import with_stored_values

ACP_COMMAND_MESSAGE = "Commands are not taken from a request. Send commandKey, a key of ACP_COMMANDS."
COMMAND_MOVED_MESSAGE = "The command changed. Send env again, or null to delete the stored values."
# Columns by the fields of a body.
ACP_COLUMNS = {
    "title": "title",
    "description": "description",
    "command_key": "command_key",
    "auth_method_id": "auth_method_id",
    "persist_session": "persists_session",
    "permissions": "permissions",
    "limits": "limits",
    "model": "model",
    "workspace": "workspace",
    "enabled": "is_enabled",
}
WIRE_PATHS = {
    "key": "id",
    "command_key": "commandKey",
    "auth_method_id": "authMethodId",
    "persists_session": "persistSession",
    "is_enabled": "enabled",
}
BLANK_COLUMNS = ("description", "auth_method_id", "model", "workspace")  # null makes them blank


class AcpAgentBody(BaseModel):
    """An ACP agent. The values of `env` are written but never read."""

    model_config = WIRE_CONFIG

    id: str
    title: Name
    command_key: str
    description: str | None = None
    env: dict[str, str] | None = None
    auth_method_id: Annotated[str, Field(max_length=128)] | None = None
    persist_session: bool | None = None
    permissions: Literal["ask", "allow_reads", "first_option", "reject"] | None = None
    limits: Limits | None = None
    model: Annotated[str, Field(max_length=128)] | None = None
    workspace: Annotated[str, Field(max_length=64)] | None = None
    enabled: bool | None = None


ACP_AGENT_CHANGE = as_partial(AcpAgentBody)
# In a response with an ACP agent, which a caller may send back as it was read.
READ_ONLY_ACP_KEYS = ("versionNumber", "createdAt", "updatedAt", "warnings")


def read_acp_agent(
    request: Request, model: type[BaseModel], row: AcpAgent | None = None
) -> tuple[JSONObject, Sequence[UnknownName]]:
    """Return the fields of a body, and the unknown names of the request. `row` is the agent that it changes.

    Raise BadRequest, ConfigError and Unprocessable.
    """
    body = json_object_body(request)
    reject_acp_commands(body)

    def check(fields: JSONObject) -> list[Issue]:
        return apply_acp_agent(row or AcpAgent(key=fields.get("id") or ""), fields)

    return read_named_fields(request, body, model, silent=READ_ONLY_ACP_KEYS, check=check)


def change_acp_agent(row: AcpAgent, fields: JSONObject) -> None:
    """Set the fields of a body on a row and validate it. Raise BadRequest."""
    reject_issues(apply_acp_agent(row, fields))


def reject_acp_commands(body: JSONObject) -> None:
    """Raise Unprocessable for a body that names a program."""
    if COMMAND_MEMBERS & body.keys():
        raise Unprocessable(ACP_COMMAND_MESSAGE, COMMAND_NOT_ALLOWED)


def apply_acp_agent(row: AcpAgent, fields: JSONObject) -> list[Issue]:
    """Set the fields of a body on a row. Return what is wrong with it."""
    command_key = row.command_key
    for name, column in ACP_COLUMNS.items():
        if fields.get(name) is not None:
            setattr(row, column, fields[name])
        elif name in fields and column in BLANK_COLUMNS:
            setattr(row, column, "")
        # Null means the defaults.
        elif name in fields and column == "limits":
            row.limits = {}
    issues = apply_environment(row, fields, is_moved=row.command_key != command_key)
    if fields.get("id") not in (None, row.key):
        issues.append(Issue("id", "The ID cannot be changed. Omit it."))
    try:
        row.full_clean()
    except ValidationError as error:
        issues += [
            Issue(WIRE_PATHS.get(name, name), message)
            for name, texts in error.message_dict.items()
            for message in texts
        ]
    return issues


def apply_environment(row: AcpAgent, fields: JSONObject, *, is_moved: bool) -> list[Issue]:
    """Set the environment of a body. Return what is wrong with it."""
    if "env" not in fields:
        # Otherwise another program would get the values.
        return [Issue("env", COMMAND_MOVED_MESSAGE)] if is_moved and row.encrypted_environment else []
    try:
        row.set_environment(with_stored_values(fields["env"] or {}, {} if is_moved else row.environment))
    except ValidationError as error:
        return [Issue("env", " ".join(error.messages))]
    return []
