"""The shapes of datasets and items, for the API, the forms and the import."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal

from django.conf import settings
from pydantic import BaseModel, Field

from agentcms.wire.json_schema import SchemaUnusable, SchemaValidator, reject_unusable_schema
from agentcms.wire.json_types import JSONObject, JSONValue
from agentcms.wire.names import to_wire
from agents_app.configuration.fields.types import Name, OwnerId
from agents_app.configuration.schema import (
    WIRE_CONFIG,
    ConfigError,
    Issue,
    as_partial,
    collecting_issues,
    validate_fields,
)
from evals_app.models import Dataset
from evals_app.scorers.expectations import expectation_issues

MAX_ERRORS = 20  # of one item
# Of the schemas, for all items of one change; 20 seconds or more, while the change locks the dataset.
MAX_STEPS_OF_CHANGE = 5_000_000
MAX_TEXT_LENGTH, MAX_KEY_LENGTH = 10_000, 256  # characters
MAX_KEYS = 50
Text = Annotated[str, Field(max_length=MAX_TEXT_LENGTH)]
Key = Annotated[str, Field(min_length=1, max_length=MAX_KEY_LENGTH)]
Keys = Annotated[list[Key], Field(max_length=MAX_KEYS)]
TOO_MANY_STEPS_MESSAGE = (
    "The schemas of the dataset take too many steps for these items. "
    "Simplify the schemas, or send fewer items at once."
)
UNSIZED_COLUMNS = ("external_id", "source")
SCHEMA_FIELDS = ("input_schema", "ground_truth_schema", "request_context_schema")


class DatasetBody(BaseModel):
    """A dataset."""

    model_config = WIRE_CONFIG

    name: Name
    owner_id: OwnerId | None = None
    description: Text | None = None
    metadata: JSONObject | None = None
    input_schema: JSONObject | None = None
    ground_truth_schema: JSONObject | None = None
    request_context_schema: JSONObject | None = None
    tags: Keys | None = None
    target_type: Literal["agent", "workflow", "scorer"] | None = None
    target_ids: Keys | None = None
    scorer_ids: Keys | None = None
    archived: bool | None = None


class ToolMock(BaseModel):
    """An answer to a call of a tool in place of the tool."""

    model_config = WIRE_CONFIG

    tool_name: Key
    args: JSONObject
    output: JSONValue
    match_args: Literal["strict", "ignore"] | None = None


class ItemSource(BaseModel):
    """The origin of an item."""

    model_config = WIRE_CONFIG

    type: Literal["csv", "json", "trace", "llm", "experiment-result", "candidate-screener"]
    reference_id: Annotated[str, Field(max_length=500)] | None = None


class ItemChange(BaseModel):
    """The fields of an item that a change may set."""

    model_config = WIRE_CONFIG

    input: JSONValue = None
    ground_truth: JSONValue = None
    expected_trajectory: JSONObject | None = None
    tool_mocks: Annotated[list[ToolMock], Field(max_length=200)] | None = None
    unmocked_tool_policy: Literal["allow", "deny"] | None = None
    scorer_ids: Keys | None = None
    request_context: JSONObject | None = None
    metadata: JSONObject | None = None
    source: ItemSource | None = None


class ItemBody(ItemChange):
    """An item of a dataset."""

    input: JSONValue
    external_id: Annotated[str, Field(min_length=1, max_length=200)] | None = None


def parse_dataset(body: object) -> JSONObject:
    """Return the columns of a new dataset. Raise ConfigError."""
    return dataset_columns(validate_fields(DatasetBody, body))


def parse_dataset_change(body: object) -> JSONObject:
    """Return the columns of a dataset that a body changes. Raise ConfigError."""
    return dataset_columns(validate_fields(as_partial(DatasetBody), body))


def schemas_of(dataset: Dataset) -> list[JSONObject | None]:
    """Return the JSON Schemas of a dataset, to compare them with earlier ones."""
    return [getattr(dataset, name) for name in SCHEMA_FIELDS]


def dataset_columns(fields: JSONObject) -> JSONObject:
    """Return the columns for the fields of a body. Raise ConfigError for what is not a JSON Schema."""
    issues = []
    for name in SCHEMA_FIELDS:
        if fields.get(name):
            try:
                reject_unusable_schema(fields[name])
            except ValueError as error:
                issues.append(Issue(to_wire(name), f"This is not a JSON Schema: {error}."))
    if issues:
        raise ConfigError(issues)
    columns = {name: value for name, value in fields.items() if name != "scorer_ids"}
    if "scorer_ids" in fields:
        columns["scorer_keys"] = fields["scorer_ids"] or []
    # Null clears a field. These columns cannot be null.
    defaults: JSONObject = {"description": "", "target_type": "", "metadata": {}, "tags": [], "target_ids": []}
    return {name: defaults.get(name) if value is None else value for name, value in columns.items()}


def parse_item(body: object, path: str = "") -> JSONObject:
    """Return the columns of a new item. `path` begins the paths of the issues. Raise ConfigError."""
    return _item_columns(ItemBody, body, path)


def parse_item_change(body: object) -> JSONObject:
    """Return the columns of an item that a body changes. Raise ConfigError."""
    return _item_columns(ItemChange, body, "")


def parse_items(bodies: list[JSONValue]) -> list[JSONObject]:
    """Return the columns of new items. Raise ConfigError with the issues of all of them."""
    issues: list[Issue] = []
    items = []
    for number, body in enumerate(bodies):
        with collecting_issues(issues):
            items.append(parse_item(body, f"items[{number}]"))
    if issues:
        raise ConfigError(issues)
    return items


def _item_columns(model: type[BaseModel], body: JSONValue, path: str) -> JSONObject:
    try:
        fields = validate_fields(model, body)
        reject_large_item(fields)
        _reject_wrong_trajectory(fields.get("expected_trajectory"))
    except ConfigError as error:
        raise ConfigError(Issue(_join(path, field), message) for field, message in error.issues) from None
    if "scorer_ids" in fields:
        fields["scorer_keys"] = fields.pop("scorer_ids")
    # Null means the default, and the column cannot be null.
    if fields.get("unmocked_tool_policy", "") is None:
        fields["unmocked_tool_policy"] = "allow"
    return fields


class ItemTooLarge(ConfigError):
    """An item above the limit. `number` is its place in a batch."""

    def __init__(self, number: int = 0, path: str = "") -> None:
        self.number = number
        message = f"An item must not exceed {settings.RUN_MAX_INPUT // 1024} KB."
        super().__init__([Issue(_join(path, "input"), message)])


def reject_large_item(columns: Mapping[str, Any]) -> None:
    """Raise ItemTooLarge for the columns of an item above the limit. What imports and exports add does not count."""
    values = {name: value for name, value in columns.items() if value is not None and name not in UNSIZED_COLUMNS}
    # The limit of a run, whose input the item becomes.
    if len(json.dumps(values, ensure_ascii=False).encode()) > settings.RUN_MAX_INPUT:
        raise ItemTooLarge


def _reject_wrong_trajectory(value: JSONObject | None) -> None:
    if value is not None and (issues := expectation_issues(value, "expectedTrajectory")):
        raise ConfigError(issues)


def _join(path: str, field: str) -> str:
    return f"{path}.{field}" if path and field else path or field


class ItemValidator:
    """The validation of items by the schemas of their dataset."""

    def __init__(self, schemas: Mapping[str, JSONObject | None]) -> None:
        """Take the schemas by the wire name of the field that they are for."""
        self.validators = {name: SchemaValidator(schema) for name, schema in schemas.items() if schema}
        self.has_given_up = False

    def issues(self, columns: Mapping[str, Any], path: str = "") -> Iterator[Issue]:
        """Yield what the schemas refuse in the columns of an item.

        After too many steps, this is an issue of one item, and the items after it are not read.
        """
        if self.has_given_up:
            return
        if sum(validator.steps for validator in self.validators.values()) > MAX_STEPS_OF_CHANGE:
            self.has_given_up = True
            yield Issue(path, TOO_MANY_STEPS_MESSAGE)
            return
        for column, wire in (
            ("input", "input"),
            ("ground_truth", "groundTruth"),
            ("request_context", "requestContext"),
        ):
            value = columns.get(column)
            if (validator := self.validators.get(wire)) is None or (value is None and column != "input"):
                continue
            yield from _schema_issues(validator, value, _join(path, wire))


def _schema_issues(validator: SchemaValidator, value: object, path: str) -> Iterator[Issue]:
    try:
        errors = validator.errors(value, MAX_ERRORS)
    except SchemaUnusable as unusable:
        yield Issue(path, str(unusable))
        return
    for error in errors:
        # Without the `$` for the root.
        yield Issue(path + error.json_path[1:], f"{error.message[:500]}.")
