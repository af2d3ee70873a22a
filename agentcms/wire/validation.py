"""Validation of values that are to be stored or sent as JSON."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from itertools import repeat
from types import NoneType
from typing import Any, NamedTuple

from agentcms.wire.json_types import JSONValue
from agentcms.wire.names import join_path, printable_key

MAX_JSON_DEPTH = 64
# Signed 64-bit integers: SQLite, PostgreSQL's bigint and typed clients store them exactly.
MIN_INTEGER, MAX_INTEGER = -(2**63), 2**63 - 1

NUL_MESSAGE = "Text must not contain a NUL character."
SURROGATE_MESSAGE = "Text must not contain half of a surrogate pair."
TOO_DEEP_MESSAGE = f"JSON must not be nested deeper than {MAX_JSON_DEPTH} levels."
TOO_BIG_MESSAGE = f"A whole number must be between {MIN_INTEGER} and {MAX_INTEGER}."
NOT_FINITE_MESSAGE = "A number must be finite and fit a double."
NOT_JSON_MESSAGE = "This is not a JSON value."
KEY_NOT_TEXT_MESSAGE = "A key must be text."
NOT_AN_OBJECT_MESSAGE = "This must be an object."
NOT_A_TEXT_MESSAGE = "This must be a text."

_ALWAYS_VALID = frozenset({bool, NoneType})


class JSONFault(NamedTuple):
    """A fault and its path: `metadata.a[3].b`, or "" for the value itself."""

    field: str
    message: str


class InvalidValue:
    """A marker in a parsed value where the text is not valid JSON; `find_json_faults` reports its path."""

    __slots__ = ("message",)

    def __init__(self, message: str) -> None:
        self.message = message


class DuplicateKeys(dict[str, Any]):
    """An object whose text repeats a key; `names` lists the repeated keys."""

    names: list[str]


def find_json_faults(value: object, path: str = "", levels: int = MAX_JSON_DEPTH) -> Iterator[JSONFault]:
    """Yield the faults of a value: the places that are not JSON or that a database would not store exactly.

    A value with a path is one level deep already. An integer beyond 64 bits is valid only if it is a double that
    jsonb wrote out; the parser rejects such an integer in a text.
    """
    depth_left = levels - bool(path)
    if not _is_valid(value, depth_left):
        yield from _faults_in_value(value, path, depth_left)


def _is_valid(value: JSONValue, depth_left: int) -> bool:
    """Return True if a value has no fault. It builds no paths, because nearly every value is valid."""
    kind = type(value)
    if kind is str:
        # Most texts are ASCII, which a text knows of itself, and which has no surrogates.
        return "\0" not in value and (value.isascii() or _text_fault(value) is None)
    if kind in _ALWAYS_VALID:
        return True
    if isinstance(value, dict):
        return depth_left > 0 and not isinstance(value, DuplicateKeys) and _are_valid_members(value, depth_left - 1)
    if isinstance(value, (list, tuple)):
        return depth_left > 0 and all(map(_is_valid, value, repeat(depth_left - 1)))
    return not (_text_fault(value) if isinstance(value, str) else _scalar_fault(value))


def _are_valid_members(members: dict[Any, Any], depth_left: int) -> bool:
    for key, item in members.items():
        if not isinstance(key, str) or "\0" in key or (not key.isascii() and _text_fault(key)):
            return False
        if type(item) not in _ALWAYS_VALID and not _is_valid(item, depth_left):
            return False
    return True


def _faults_in_value(value: object, path: str, depth_left: int) -> Iterator[JSONFault]:
    if isinstance(value, dict | list | tuple):
        if depth_left:
            yield from _faults_in_members(value, path, depth_left - 1)
        else:
            yield JSONFault(path, TOO_DEEP_MESSAGE)
    elif message := _text_fault(value) if isinstance(value, str) else _scalar_fault(value):
        yield JSONFault(path, message)


def _faults_in_members(value: JSONValue, path: str, depth_left: int) -> Iterator[JSONFault]:
    if not isinstance(value, dict):
        for index, item in enumerate(value):
            yield from _faults_in_value(item, f"{path}[{index}]", depth_left)
        return
    if isinstance(value, DuplicateKeys):
        for name in value.names:
            yield JSONFault(join_path(path, name), f"The key {printable_key(name)!r} is repeated in one object.")
    for key, item in value.items():
        item_path = join_path(path, str(key))
        if message := _text_fault(key) if isinstance(key, str) else KEY_NOT_TEXT_MESSAGE:
            yield JSONFault(item_path, message.replace("Text", "A key", 1))
        yield from _faults_in_value(item, item_path, depth_left)


def _text_fault(text: str) -> str | None:
    if "\0" in text:
        return NUL_MESSAGE
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError:
            return SURROGATE_MESSAGE
    return None


def _scalar_fault(value: object) -> str | None:
    if value is None or isinstance(value, bool):
        return None
    if isinstance(value, int):
        return None if MIN_INTEGER <= value <= MAX_INTEGER or is_double(value) else TOO_BIG_MESSAGE
    if isinstance(value, float):
        return None if value - value == 0 else NOT_FINITE_MESSAGE  # of NaN and infinity it is NaN
    return value.message if isinstance(value, InvalidValue) else NOT_JSON_MESSAGE


def is_double(value: int) -> bool:
    """Return whether a whole number is the shortest decimal of a double, as JavaScript and PostgreSQL write it."""
    try:
        return int(Decimal(repr(float(value)))) == value
    except OverflowError:
        return False
