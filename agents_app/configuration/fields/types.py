"""The types of single values in a configuration, with the rules that each must meet."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Discriminator, Field, WithJsonSchema
from pydantic_core import PydanticCustomError

from agentcms.lookalike_ids import describe_ambiguity
from agentcms.wire.json_types import JSONObject

MAX_REFERENCES = 1000  # of one kind in one agent; a body could hold millions, and each costs validation time
# Controls, formats such as the zero-width space, and separators. A link with such a name alone could not be seen.
INVISIBLE_CATEGORIES = frozenset({"Cc", "Cf", "Zs", "Zl", "Zp"})


def validation_error(message: str) -> PydanticCustomError:
    """Return an error for a validator to raise."""
    # Pydantic fills the braces of a message, and ours may quote some.
    return PydanticCustomError("agent", "{message}", {"message": message})


def choose_by(find_tag: Callable[[Any], str | None], values: str) -> Discriminator:
    """Choose the alternative of a union by its tag, so that an error is that of one alternative.

    A value without a tag is rejected with the text of what the union takes.
    """
    return Discriminator(find_tag, custom_error_type="agent", custom_error_message=f"This must be {values}.")


def _validate_not_blank(value: str) -> str:
    if not any(map(_is_visible, value)):
        raise validation_error("This may not be blank.")
    return value


def _is_visible(character: str) -> bool:
    return unicodedata.category(character) not in INVISIBLE_CATEGORIES


def _validate_id(value: str) -> str:
    _validate_not_blank(value)
    if not value.isprintable() or "/" in value or value in {".", ".."}:
        raise validation_error("Use printable characters other than a slash; '.' and '..' are not allowed.")
    return value


def _validate_new_id(value: str) -> str:
    _validate_id(value)
    if message := describe_ambiguity(value):
        raise validation_error(message)
    return value


def _validate_distinct(keys: list[str]) -> list[str]:
    seen: set[str] = set()
    for key in keys:
        if key in seen:
            raise validation_error(f"'{key}' is listed twice; list each key once.")
        seen.add(key)
    return keys


def null_resets_to(default: type) -> BeforeValidator:
    """Reset an optional field that is sent as null."""
    return BeforeValidator(lambda value: default() if value is None else value)


def _limit_keys(value: object) -> object:
    """Reject an object with too many keys before pydantic validates each of them."""
    if isinstance(value, dict) and len(value) > MAX_REFERENCES:
        raise PydanticCustomError("too_long", "")  # _error_message has the text of this type
    return value


def _validate_durable(value: object) -> object:
    match value:
        case None | True | False:
            return value
        case {"maxSteps": bool()}:  # which is an int in Python
            pass
        case {"maxSteps": int(steps)} if steps >= 1:
            return value
    raise validation_error("This must be true, false, null, or an object with maxSteps, a whole number above 0.")


DURABLE_SCHEMA: JSONObject = {
    "anyOf": [
        {"type": "boolean"},
        {"type": "object", "properties": {"maxSteps": {"type": "integer", "minimum": 1}}, "required": ["maxSteps"]},
        {"type": "null"},
    ],
    "default": None,
}

LimitKeys = BeforeValidator(_limit_keys)

NonBlank = Annotated[str, AfterValidator(_validate_not_blank)]
AgentId = Annotated[str, Field(min_length=1, max_length=128), AfterValidator(_validate_id)]
NewAgentId = Annotated[AgentId, AfterValidator(_validate_new_id)]
# Blank is the owner of shared agents.
OwnerId = Annotated[str, Field(max_length=128), AfterValidator(lambda value: value and _validate_id(value))]
Name = Annotated[str, Field(max_length=200), AfterValidator(_validate_not_blank)]
Text = Annotated[str, null_resets_to(str)]
Key = Annotated[str, Field(max_length=256), AfterValidator(_validate_not_blank)]
Keys = Annotated[list[Key], Field(max_length=MAX_REFERENCES), AfterValidator(_validate_distinct), null_resets_to(list)]
Object = Annotated[JSONObject, null_resets_to(dict)]
Objects = Annotated[list[JSONObject], Field(max_length=MAX_REFERENCES), null_resets_to(list)]
# The cosine of two vectors. Those of most embedders are above 0, and vectors that callers compute have any direction.
SimilarityScore = Annotated[float, Field(ge=-1, le=1)]
Durable = Annotated[Any, AfterValidator(_validate_durable), WithJsonSchema(DURABLE_SCHEMA)]
