"""Find values that cannot be stored or sent as JSON."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from itertools import repeat
from types import NoneType
from typing import Any, NamedTuple

from agentcms.wire.names import join_path, printable_key

MAX_DEPTH = 64


# Signed, so that SQLite, PostgreSQL's bigint and every typed client hold what was accepted exactly.
MIN_INTEGER, MAX_INTEGER = -(2**63), 2**63 - 1


NUL_MESSAGE = "Text must not contain a NUL character."


SURROGATE_MESSAGE = "Text must not contain half of a surrogate pair."


TOO_DEEP_MESSAGE = f"JSON must not be nested deeper than {MAX_DEPTH} levels."


TOO_BIG_MESSAGE = f"A whole number must lie between {MIN_INTEGER} and {MAX_INTEGER}."


NOT_FINITE_MESSAGE = "A number must be finite and fit a double."


NOT_JSON_MESSAGE = "This is not a JSON value."


KEY_NOT_TEXT_MESSAGE = "A key must be text."


_ALWAYS_VALID = frozenset({bool, NoneType})


class JSONFault(NamedTuple):
    """What is wrong, and the path of where: `metadata.a[3].b`, or "" for the value itself."""

    field: str
    message: str


class InvalidValue:
    """Stands in a parsed value where the text held something that is not our JSON; `faults` names its place."""

    __slots__ = ("message",)

    def __init__(self, message: str) -> None:
        self.message = message


class DuplicateKeys(dict[str, Any]):
    """An object whose text named a key more than once."""

    names: list[str]


def find_faults(value: Any, path: str = "", levels: int = MAX_DEPTH) -> Iterator[JSONFault]:
    """Every place where a value is not JSON that both databases keep exactly.

    A value with a path already stands one level down. An integer beyond 64 bits passes only where it is a double that
    jsonb spelled out; a text that writes such an integer is refused by `strict_json.parse`.
    """
    room = levels - bool(path)
    if not _is_valid(value, room):
        yield from _faults_in_value(value, path, room)


def _is_valid(value: Any, room: int) -> bool:
    """Whether a value has no fault; without paths, because nearly every value is sound."""
    kind = type(value)
    if kind is str:
        return "\0" not in value and (value.isascii() or _text_fault(value) is None)
    if kind in _ALWAYS_VALID:
        return True
    if isinstance(value, dict):
        return room > 0 and not isinstance(value, DuplicateKeys) and _are_valid_members(value, room - 1)
    if isinstance(value, (list, tuple)):
        return room > 0 and all(map(_is_valid, value, repeat(room - 1)))
    return not (_text_fault(value) if isinstance(value, str) else _scalar_fault(value))


def _are_valid_members(members: dict[Any, Any], room: int) -> bool:
    for key, item in members.items():
        if not isinstance(key, str) or "\0" in key or (not key.isascii() and _text_fault(key)):
            return False
        if type(item) not in _ALWAYS_VALID and not _is_valid(item, room):
            return False
    return True


def _faults_in_value(value: Any, path: str, room: int) -> Iterator[JSONFault]:
    if isinstance(value, dict | list | tuple):
        if room:
            yield from _faults_in_members(value, path, room - 1)
        else:
            yield JSONFault(path, TOO_DEEP_MESSAGE)
    elif message := _text_fault(value) if isinstance(value, str) else _scalar_fault(value):
        yield JSONFault(path, message)


def _faults_in_members(value: Any, path: str, room: int) -> Iterator[JSONFault]:
    if not isinstance(value, dict):
        for index, item in enumerate(value):
            yield from _faults_in_value(item, f"{path}[{index}]", room)
        return
    if isinstance(value, DuplicateKeys):
        for name in value.names:
            yield JSONFault(join_path(path, name), f"The key {printable_key(name)!r} stands twice in one object.")
    for key, item in value.items():
        where = join_path(path, str(key))
        if message := _text_fault(key) if isinstance(key, str) else KEY_NOT_TEXT_MESSAGE:
            yield JSONFault(where, message.replace("Text", "A key", 1))
        yield from _faults_in_value(item, where, room)


def _text_fault(text: str) -> str | None:
    if "\0" in text:
        return NUL_MESSAGE
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError:
            return SURROGATE_MESSAGE
    return None


def _scalar_fault(value: Any) -> str | None:
    if value is None or isinstance(value, bool):
        return None
    if isinstance(value, int):
        return None if MIN_INTEGER <= value <= MAX_INTEGER or _is_double(value) else TOO_BIG_MESSAGE
    if isinstance(value, float):
        return None if value - value == 0 else NOT_FINITE_MESSAGE
    return value.message if isinstance(value, InvalidValue) else NOT_JSON_MESSAGE


def _is_double(value: int) -> bool:
    try:
        return int(Decimal(repr(float(value)))) == value
    except OverflowError:
        return False
