"""What JSON is here: one canonical text, wire names, times, and what no stored value may contain."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from decimal import Decimal
from functools import lru_cache
from itertools import repeat
from operator import is_
from types import NoneType
from typing import Any, NamedTuple

MAX_DEPTH = 64
# Signed, so that SQLite, PostgreSQL's bigint and every typed client hold what was accepted exactly.
MIN_INTEGER, MAX_INTEGER = -(2**63), 2**63 - 1

NUL = "Text must not contain a NUL character."
SURROGATE = "Text must not contain half of a surrogate pair."
TOO_DEEP = f"JSON must not be nested deeper than {MAX_DEPTH} levels."
TOO_BIG = f"A whole number must lie between {MIN_INTEGER} and {MAX_INTEGER}."
NOT_FINITE = "A number must be finite and fit a double."
NOT_JSON = "This is not a JSON value."
NOT_TEXT = "A key must be text."

_SHOWN_KEY = 100
# Asked first in the two loops over every value, because most values are these.
_NEVER_CHANGED = frozenset({str, bool, NoneType})
_NEVER_WRONG = frozenset({bool, NoneType})
_encode = json.JSONEncoder(ensure_ascii=False, sort_keys=True, separators=(",", ":"), allow_nan=False).encode


class Fault(NamedTuple):
    """What is wrong, and the path of where: `metadata.a[3].b`, or "" for the value itself."""

    field: str
    message: str


class Refused:
    """Stands in a parsed value where the text held something that is not our JSON; `faults` names its place."""

    __slots__ = ("message",)

    def __init__(self, message: str) -> None:
        self.message = message


class Repeated(dict[str, Any]):
    """An object whose text named a key more than once."""

    names: list[str]


def canonical(value: Any) -> str:
    """The one JSON text of a value: equal JSON gives equal text, on either database and after any round trip.

    Raises ValueError for a number that is not finite; ask `faults` first.
    """
    return _encode(normalise(value))


def digest(canonical_text: str) -> str:
    """The SHA-256 of a canonical text, in hexadecimal."""
    return hashlib.sha256(canonical_text.encode()).hexdigest()


def same(before: Any, after: Any) -> bool:
    """Whether two values are the same JSON: `true` is not `1`, and the order of keys does not count."""
    # What is equal may still be `true` and `1`, what is not may be one number to JSON; but not texts, nor nothing.
    if type(before) is type(after) and (isinstance(before, str) or not (before or after)):
        return bool(before == after)
    return before is after or canonical(before) == canonical(after)


def normalise(value: Any) -> Any:
    """The same JSON value with one Python number per JSON number; the very object given if nothing had to change.

    jsonb keeps decimals: it answers 1e22 as a long integer and -0.0 as 0.0. An integer, or an integral float, is an
    int within 64 bits and a float beyond.
    """
    if isinstance(value, dict):
        changed = {
            key: new
            for key, old in value.items()
            if type(old) not in _NEVER_CHANGED and (new := normalise(old)) is not old
        }
        return {**value, **changed} if changed else value
    if isinstance(value, (list, tuple)):
        items = [item if type(item) in _NEVER_CHANGED else normalise(item) for item in value]
        return value if all(map(is_, items, value)) else items
    if isinstance(value, int) and not isinstance(value, bool):
        return value if MIN_INTEGER <= value <= MAX_INTEGER else float(value)
    if isinstance(value, float) and value.is_integer():
        return _integral(value)
    return value


def _integral(value: float) -> int | float:
    # Through the shortest decimal, which is what both databases store: 2.0**60 is written 1.152921504606847e+18.
    whole = int(value) if abs(value) < 1e16 else int(Decimal(repr(value)))
    return whole if MIN_INTEGER <= whole <= MAX_INTEGER else value


def faults(value: Any, path: str = "", levels: int = MAX_DEPTH) -> Iterator[Fault]:
    """Every place where a value is not JSON that both databases keep exactly.

    A value with a path already stands one level down. An integer beyond 64 bits passes only where it is a double that
    jsonb spelled out; a text that writes such an integer is refused by `strict_json.parse`.
    """
    room = levels - bool(path)
    if not _is_sound(value, room):
        yield from _walk(value, path, room)


def _is_sound(value: Any, room: int) -> bool:
    """Whether a value has no fault; without paths, because nearly every value is sound."""
    kind = type(value)
    if kind is str:
        return "\0" not in value and (value.isascii() or _text_fault(value) is None)
    if kind in _NEVER_WRONG:
        return True
    if isinstance(value, dict):
        return room > 0 and not isinstance(value, Repeated) and _are_sound_members(value, room - 1)
    if isinstance(value, (list, tuple)):
        return room > 0 and all(map(_is_sound, value, repeat(room - 1)))
    return not (_text_fault(value) if isinstance(value, str) else _scalar_fault(value))


def _are_sound_members(members: dict[Any, Any], room: int) -> bool:
    for key, item in members.items():
        if not isinstance(key, str) or "\0" in key or (not key.isascii() and _text_fault(key)):
            return False
        if type(item) not in _NEVER_WRONG and not _is_sound(item, room):
            return False
    return True


def _walk(value: Any, path: str, room: int) -> Iterator[Fault]:
    if isinstance(value, dict | list | tuple):
        if room:
            yield from _walk_members(value, path, room - 1)
        else:
            yield Fault(path, TOO_DEEP)
    elif message := _text_fault(value) if isinstance(value, str) else _scalar_fault(value):
        yield Fault(path, message)


def _walk_members(value: Any, path: str, room: int) -> Iterator[Fault]:
    if not isinstance(value, dict):
        for index, item in enumerate(value):
            yield from _walk(item, f"{path}[{index}]", room)
        return
    if isinstance(value, Repeated):
        for name in value.names:
            yield Fault(join(path, name), f"The key {shown(name)!r} stands twice in one object.")
    for key, item in value.items():
        where = join(path, str(key))
        if message := _text_fault(key) if isinstance(key, str) else NOT_TEXT:
            yield Fault(where, message.replace("Text", "A key", 1))
        yield from _walk(item, where, room)


def _text_fault(text: str) -> str | None:
    if "\0" in text:
        return NUL
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError:
            return SURROGATE
    return None


def _scalar_fault(value: Any) -> str | None:
    if value is None or isinstance(value, bool):
        return None
    if isinstance(value, int):
        return None if MIN_INTEGER <= value <= MAX_INTEGER or _is_double(value) else TOO_BIG
    if isinstance(value, float):
        return None if value - value == 0 else NOT_FINITE
    return value.message if isinstance(value, Refused) else NOT_JSON


def _is_double(value: int) -> bool:
    try:
        return int(Decimal(repr(float(value)))) == value
    except OverflowError:
        return False


def shown(key: str) -> str:
    """A caller's key as it may stand in an answer: short, without NUL, and always UTF-8."""
    clipped = key if len(key) <= _SHOWN_KEY else key[:_SHOWN_KEY] + "…"
    return clipped.replace("\0", "\\u0000").encode("utf-8", "backslashreplace").decode()


def join(path: str, key: str) -> str:
    """The path of a member: `a` and `b` make `a.b`."""
    return f"{path}.{shown(key)}" if path else shown(key)


@lru_cache(maxsize=1024)
def to_wire(name: str) -> str:
    """`version_number` as it is called on the wire: `versionNumber`."""
    return re.sub(r"(?<=[a-z0-9])_([a-z0-9])", lambda match: match[1].upper(), name)


@lru_cache(maxsize=1024)
def to_python(name: str) -> str:
    """`versionNumber` as it is called in Python: `version_number`."""
    return re.sub(r"(?<=[a-z0-9])([A-Z])", lambda match: "_" + match[1].lower(), name)


def wire_path(path: str) -> str:
    """The path of a field on the wire; what stands below the field is the caller's own and stays."""
    end = next((index for index, letter in enumerate(path) if letter in ".["), len(path))
    return to_wire(path[:end]) + path[end:]


def wire_time(moment: datetime) -> str:
    """A time as the wire has it: ISO 8601 in UTC, cut to milliseconds, with a Z. A naive time is a ValueError."""
    if moment.tzinfo is not UTC:  # what a database gives is
        if moment.tzinfo is None:
            raise ValueError("A time without a zone cannot go on the wire.")
        moment = moment.astimezone(UTC)
    return moment.isoformat(timespec="milliseconds")[:-6] + "Z"


_TIME = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,6})?(Z|[+-][0-9]{2}:[0-9]{2})")


def read_time(text: str) -> datetime:
    """A wire time as an aware datetime in UTC; any offset is understood, none is a ValueError."""
    try:
        if _TIME.fullmatch(text):
            return datetime.fromisoformat(text).astimezone(UTC)
    except (ValueError, OverflowError):
        pass
    raise ValueError("Write a time such as 2026-01-31T09:30:00.000Z.")


def splice(*objects: str) -> str:
    """One JSON object with the members of several object texts, in order and without parsing them.

    The texts are canonical (no space around them) and share no key: `splice(before, snapshot, after)`.
    """
    return "{" + ",".join([text[1:-1] for text in objects if text != "{}"]) + "}"
