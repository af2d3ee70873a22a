"""Schemas of the request bodies of the API of versions, and the parameters of comparisons."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, Field

from agentcms.api.query_params import QueryParams
from agentcms.wire.json_types import JSONObject, JSONValue
from agents_app.api.schemas import ChangeMessage, validate_schemas
from agents_app.configuration.fields.types import AgentId
from agents_app.configuration.schema import WIRE_CONFIG, ConfigError, Issue

VersionName = Annotated[str, Field(max_length=100)]
READ_ONLY_VERSION_FIELDS = (
    "id",
    "agentId",
    "versionNumber",
    "snapshot",
    "changedFields",
    "createdAt",
    "author",
    "source",
    "basedOn",
    "isActive",
    "isHead",
)


class Description(BaseModel):
    """The editable fields of a version."""

    model_config = WIRE_CONFIG

    name: VersionName | None = None
    change_message: ChangeMessage | None = None
    pinned: bool | None = None


class Undo(BaseModel):
    """The activation to undo. The default is the newest."""

    model_config = WIRE_CONFIG

    activation_id: int | None = None


class RestoreOptions(BaseModel):
    """Another ID for an agent that is restored from the trash."""

    model_config = WIRE_CONFIG

    id: AgentId | None = None


def parse_description(body: JSONValue) -> JSONObject:
    """Return the name, message and pin of a request body. A null resets the field. Raise ConfigError."""
    if read_only := [name for name in READ_ONLY_VERSION_FIELDS if name in body]:
        raise ConfigError(
            Issue(name, "Read-only. Only name, changeMessage and pinned can be changed.") for name in read_only
        )
    values = validate_schemas(body, Description)[0]
    return {name: ("" if name != "pinned" else False) if value is None else value for name, value in values.items()}


def read_compared_versions(query: QueryParams) -> list[str]:
    """Return the versions that the parameters `from` and `to` of a comparison name."""
    names = {parameter: query.text(parameter, "") or "" for parameter in ("from", "to")}
    for parameter, name in names.items():
        if not name:
            query.add_fault(parameter, "Give a version ID, live or head.")
    return [*names.values()]
