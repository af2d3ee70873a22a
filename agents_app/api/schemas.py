"""What the bodies of the API's writes say, beside the configuration of an agent."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any

from pydantic import BaseModel, Field

from agents_app.configuration.schema import (
    WIRE_CONFIG,
    AgentConfig,
    AgentId,
    ConfigError,
    Issue,
    JSONObject,
    Name,
    OwnerId,
    as_partial,
    collecting_issues,
    validate_fields,
)
from agents_app.editing.change_context import Change, change

Message = Annotated[str, Field(max_length=500)]


class ChangeOptions(BaseModel):
    """Why a change is made, and whether it goes live."""

    model_config = WIRE_CONFIG

    change_message: Message | None = None
    auto_publish: bool | None = None


class Ownership(BaseModel):
    """Whose the agent is."""

    model_config = WIRE_CONFIG

    owner_id: OwnerId | None = None


class Identity(BaseModel):
    """The id of a new agent."""

    model_config = WIRE_CONFIG

    id: AgentId


class DuplicateOptions(BaseModel):
    """What a duplicate may change."""

    model_config = WIRE_CONFIG

    name: Name | None = None
    version_id: str | None = None


def validate_schemas(body: Any, *parts: type[BaseModel]) -> list[JSONObject]:
    """What a body says in each of several shapes; ShapeError with the faults of all of them at once."""
    values: list[JSONObject] = []
    issues: list[Issue] = []
    for part in parts:
        with collecting_issues(issues):
            values.append(validate_fields(part, body))
    if issues:
        raise ConfigError(dict.fromkeys(issues))
    return values


def parse_create(body: Any) -> tuple[JSONObject, str, str | None, JSONObject]:
    """The configuration, id, owner and reason of a new agent."""
    identity, fields, ownership, said = validate_schemas(body, Identity, AgentConfig, Ownership, ChangeOptions)
    return fields, identity["id"], ownership.get("owner_id"), said


def parse_patch(body: Any) -> tuple[JSONObject, str | None, JSONObject]:
    """The fields, the new owner and the reason of a PATCH."""
    fields, ownership, said = validate_schemas(body, as_partial(AgentConfig), Ownership, ChangeOptions)
    return fields, ownership.get("owner_id"), said


def is_publishing(said: JSONObject) -> bool:
    """Whether a write goes live: it does unless it says `autoPublish: false`."""
    return said.get("auto_publish") is not False


@contextmanager
def change_from_options(said: JSONObject, **more: Any) -> Iterator[Change]:
    """The change context of a write, as its body describes it."""
    with change(message=said.get("change_message") or "", publish=is_publishing(said), **more) as context:
        yield context
