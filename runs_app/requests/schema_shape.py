"""The shape of the schemas of client tools, of any draft of JSON Schema. What is not checked here is sent as it is."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from agentcms.wire.json_types import JSONMapping, JSONValue
from agentcms.wire.names import join_path
from agentcms.wire.validation import NOT_AN_OBJECT_MESSAGE
from agents_app.configuration.schema import Issue

NOT_A_SCHEMA_MESSAGE = "A schema must be an object, true or false."
NOT_ARGUMENTS_MESSAGE = 'The arguments of a tool are an object. Send {"type": "object", "properties": {…}}.'
MAPPINGS = ("properties", "patternProperties", "$defs", "definitions")  # keywords with schemas by name
LISTS = ("prefixItems", "allOf", "anyOf", "oneOf")  # keywords with a list of schemas
SCHEMAS = ("additionalProperties", "items", "propertyNames", "contains")  # keywords with a schema


class Rule(NamedTuple):
    """The rule of a keyword whose value is not a schema."""

    accepts: Callable[[JSONValue], bool]
    message: str


def is_type(value: JSONValue) -> bool:
    return isinstance(value, str) or (isinstance(value, list) and all(isinstance(name, str) for name in value))


RULES = {
    "type": Rule(is_type, "This must be the name of a type, or a list of such names."),
    "required": Rule(lambda value: isinstance(value, list), "This must be a list of names."),
    "enum": Rule(lambda value: isinstance(value, list), "This must be a list of values."),
}


def argument_schema_issues(schema: JSONMapping, path: str) -> Iterator[Issue]:
    """Yield the issues of the schema of the arguments of a tool."""
    types = schema.get("type", "object")
    if is_type(types) and "object" not in ([types] if isinstance(types, str) else types):
        yield Issue(f"{path}.type", NOT_ARGUMENTS_MESSAGE)
    yield from schema_issues(schema, path)


def schema_issues(schema: JSONValue, path: str) -> Iterator[Issue]:
    """Yield an issue for each part of a schema that no model provider can read."""
    if isinstance(schema, bool):
        return
    if not isinstance(schema, dict):
        yield Issue(path, NOT_A_SCHEMA_MESSAGE)
        return
    for keyword, value in schema.items():
        place = join_path(path, keyword)
        rule = RULES.get(keyword)
        if value is None:  # some clients send members without a value
            continue
        if rule is not None and not rule.accepts(value):
            yield Issue(place, rule.message)
        elif keyword in MAPPINGS:
            yield from mapping_issues(value, place)
        elif keyword in LISTS or (keyword == "items" and isinstance(value, list)):
            yield from list_issues(value, place)
        elif keyword in SCHEMAS:
            yield from schema_issues(value, place)


def mapping_issues(value: JSONValue, path: str) -> Iterator[Issue]:
    if not isinstance(value, dict):
        yield Issue(path, NOT_AN_OBJECT_MESSAGE)
        return
    for name, schema in value.items():
        yield from schema_issues(schema, join_path(path, name))


def list_issues(value: JSONValue, path: str) -> Iterator[Issue]:
    if not isinstance(value, list):
        yield Issue(path, "This must be a list of schemas.")
        return
    for index, schema in enumerate(value):
        yield from schema_issues(schema, f"{path}[{index}]")
