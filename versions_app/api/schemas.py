"""What the bodies of the API's writes say of versions."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, Field

from agents_app.api.schemas import Message, validate_schemas
from agents_app.configuration.schema import WIRE_CONFIG, ConfigError, Issue, JSONObject

VersionName = Annotated[str, Field(max_length=100)]
READ_ONLY_FIELDS = (
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
    """What may be said of a version."""

    model_config = WIRE_CONFIG

    name: VersionName | None = None
    change_message: Message | None = None
    pinned: bool | None = None


class Undo(BaseModel):
    """Which activation to undo: the newest where none is named."""

    model_config = WIRE_CONFIG

    activation_id: int | None = None


def parse_description(body: Any) -> JSONObject:
    """The name, message and pin that a body gives; a null resets."""
    if fixed := [name for name in READ_ONLY_FIELDS if name in body]:
        raise ConfigError(
            Issue(name, "Only the name, the message and the pin of a version may change.") for name in fixed
        )
    said = validate_schemas(body, Description)[0]
    return {name: ("" if name != "pinned" else False) if value is None else value for name, value in said.items()}
