"""Schemas of request bodies, besides the configuration of an agent."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any

from pydantic import BaseModel, Field, StringConstraints

from agentcms.wire.json_types import JSONObject
from agentcms.wire.unknown_names import UnknownName
from agents_app.configuration.fields.types import Name, NewAgentId, OwnerId
from agents_app.configuration.schema import (
    WIRE_CONFIG,
    AgentConfig,
    ConfigError,
    Issue,
    as_partial,
    collecting_issues,
    validate_fields,
)
from agents_app.editing.change_context import Change, change

ChangeMessage = Annotated[str, Field(max_length=500)]
# Shorter than the column, which has words before the reason. As on pages, spaces around it do not count.
BypassReason = Annotated[str, StringConstraints(strip_whitespace=True, min_length=10, max_length=450)]


class ChangeNote(BaseModel):
    """The message of a change."""

    model_config = WIRE_CONFIG

    change_message: ChangeMessage | None = None


class ChangeOptions(ChangeNote):
    """The message of a change, and whether to publish it."""

    # None if the caller did not say: what a gate refuses then stays a draft, instead of an error.
    auto_publish: Annotated[bool | None, Field(json_schema_extra={"default": True})] = None
    bypass_reason: BypassReason | None = None


class Ownership(BaseModel):
    """The owner of an agent."""

    model_config = WIRE_CONFIG

    owner_id: OwnerId | None = None


class Identity(BaseModel):
    """The ID of a new agent."""

    model_config = WIRE_CONFIG

    id: NewAgentId


class DuplicateOptions(BaseModel):
    """The name of a duplicate, and the version to copy."""

    model_config = WIRE_CONFIG

    name: Name | None = None
    version_id: str | None = None


def validate_schemas(body: object, *models: type[BaseModel]) -> list[JSONObject]:
    """Return the fields of each model in a body. Raise ConfigError with the issues of all models."""
    values: list[JSONObject] = []
    issues: list[Issue] = []
    for model in models:
        with collecting_issues(issues):
            values.append(validate_fields(model, body))
    if issues:
        # Each once: a body that is not an object is an issue of every model.
        raise ConfigError(dict.fromkeys(issues))
    return values


CREATE_MODELS = (Identity, AgentConfig, Ownership, ChangeOptions)
PATCH_MODELS = (as_partial(AgentConfig), Ownership, ChangeOptions)
DUPLICATE_MODELS = (Identity, DuplicateOptions, Ownership)


def parse_create(body: object) -> tuple[JSONObject, str, str | None, JSONObject]:
    """Parse the body of a new agent into its configuration, ID, owner and change options."""
    identity, fields, ownership, options = validate_schemas(body, *CREATE_MODELS)
    return fields, identity["id"], ownership.get("owner_id"), options


def parse_patch(body: object) -> tuple[JSONObject, str | None, JSONObject]:
    """Parse the body of a PATCH into its configuration fields, new owner and change options."""
    fields, ownership, options = validate_schemas(body, *PATCH_MODELS)
    return fields, ownership.get("owner_id"), options


def is_publishing(options: JSONObject) -> bool:
    """Return whether a write publishes. It does unless `autoPublish` is false."""
    return options.get("auto_publish") is not False


def first_version_notes(options: JSONObject) -> list[UnknownName]:
    """Return a warning if the body of a new agent asks for a draft: version 1 replaces nothing and is always live."""
    message = "Version 1 of an agent is always live, so this has no effect. Omit it, and save drafts by PATCH."
    return [] if is_publishing(options) else [UnknownName("autoPublish", "autoPublish", message)]


@contextmanager
def change_from_options(options: JSONObject, **more: Any) -> Iterator[Change]:
    """Open the change context that a request body describes."""
    with change(
        message=options.get("change_message") or "",
        publish=is_publishing(options),
        publishes_by_default=options.get("auto_publish") is None,
        bypass_reason=options.get("bypass_reason") or "",
        **more,
    ) as context:
        yield context
