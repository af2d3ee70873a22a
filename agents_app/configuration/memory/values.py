"""The types of the values in a memory: their checks and how the description of the API shows them."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, Tag, WithJsonSchema

from agentcms.wire.json_schema import reject_invalid_schema
from agentcms.wire.json_types import JSONObject, JSONValue
from agents_app.configuration.fields.types import validation_error

MAX_LAST_MESSAGES = 1000
MAX_MESSAGE_RANGE = 10
MAX_OPTION_TEXT_LENGTH = 32_768  # of a template, of a JSON Schema as text, and of instructions
# Names of the alternatives of a union. They are not part of the path of an error.
KEY_TAG, OBJECT_TAG, FLAG_TAG = "[key of a memory]", "[options of a memory]", "[on or off]"
UNION_TAGS = frozenset({KEY_TAG, OBJECT_TAG, FLAG_TAG})


def _is_name(value: object) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _validate_model(value: object) -> object:
    if isinstance(value, str):
        provider, separator, name = value.partition("/")
        if separator and _is_name(provider) and _is_name(name):
            return value
    elif (
        isinstance(value, dict) and _is_name(value.get("provider")) and _is_name(value.get("name"))
    ) or value is None:
        return value
    raise validation_error('Name a model as "provider/name", or as an object with provider and name.')


def _validate_last_messages(value: object) -> object:
    # By `type`, because True is an instance of int.
    if value is False or value is None or (type(value) is int and 0 <= value <= MAX_LAST_MESSAGES):
        return value
    raise validation_error(f"This must be a whole number from 0 to {MAX_LAST_MESSAGES:,}, or false for no messages.")


def _validate_message_range(value: object) -> object:
    counts = [value.get("before", 0), value.get("after", 0)] if isinstance(value, dict) else [value]
    if value is None or all(type(count) is int and 0 <= count <= MAX_MESSAGE_RANGE for count in counts):
        return value
    raise validation_error(
        f"This must be a whole number from 0 to {MAX_MESSAGE_RANGE}, or an object with before and after."
    )


def _validate_buffer_tokens(value: JSONValue) -> object:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if value is False or value is None or (is_number and (0 < value <= 1 or (value == int(value) and value > 1))):
        return value
    raise validation_error("This must be a share of messageTokens from 0 to 1, a number of tokens, or false.")


def _validate_schema(value: object) -> object:
    if value is None:
        return value
    if not isinstance(value, dict) or value.get("type", "object") != "object":
        raise validation_error("This must be a JSON Schema of the type object.")
    if len(str(value)) > MAX_OPTION_TEXT_LENGTH:
        raise validation_error(f"This must not exceed {MAX_OPTION_TEXT_LENGTH:,} characters.")
    try:
        reject_invalid_schema(value)
    except ValueError as error:
        raise validation_error(f"This is not a JSON Schema: {error}") from None
    return value


_MODEL_SCHEMA = {
    "anyOf": [
        {"type": "string", "pattern": ".+/.+"},
        {
            "type": "object",
            "properties": {"provider": {"type": "string"}, "name": {"type": "string"}},
            "required": ["provider", "name"],
        },
        {"type": "null"},
    ],
    "default": None,
}
_COUNT_OR_FALSE = {"anyOf": [{"type": "integer", "minimum": 0, "maximum": MAX_LAST_MESSAGES}, {"const": False}]}
_COUNT: JSONObject = {"type": "integer", "minimum": 0, "maximum": MAX_MESSAGE_RANGE}
_RANGE_SCHEMA = {"anyOf": [_COUNT, {"type": "object", "properties": {"before": _COUNT, "after": _COUNT}}]}
_OBJECT_SCHEMA = {"anyOf": [{"type": "object"}, {"type": "null"}], "default": None}
_BUFFER_SCHEMA = {"anyOf": [{"type": "number", "exclusiveMinimum": 0}, {"const": False}]}
NamedModel = Annotated[Any, AfterValidator(_validate_model), WithJsonSchema(_MODEL_SCHEMA)]
LongText = Annotated[str, Field(max_length=MAX_OPTION_TEXT_LENGTH)]
Scope = Literal["resource", "thread"]
MessageCount = Annotated[Any, AfterValidator(_validate_last_messages), WithJsonSchema(_COUNT_OR_FALSE)]
MessageRange = Annotated[Any, AfterValidator(_validate_message_range), WithJsonSchema(_RANGE_SCHEMA)]
ObjectSchema = Annotated[Any, AfterValidator(_validate_schema), WithJsonSchema(_OBJECT_SCHEMA)]
BufferTokens = Annotated[Any, AfterValidator(_validate_buffer_tokens), WithJsonSchema(_BUFFER_SCHEMA)]


def _validate_flag(value: object) -> object:
    if value is None or isinstance(value, bool):
        return value
    raise validation_error("This must be true, false or an object.")


Flag = Annotated[Any, AfterValidator(_validate_flag), WithJsonSchema({"type": "boolean"}), Tag(FLAG_TAG)]
