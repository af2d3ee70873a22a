"""What JSON is here: one canonical text, wire names, times, and what no stored value may contain."""

from __future__ import annotations

import hashlib
import json
from decimal import Decimal
from operator import is_
from types import NoneType
from typing import Any

from agentcms.wire.validation import MAX_INTEGER, MIN_INTEGER

# Asked first in the two loops over every value, because most values are these.
_ALREADY_NORMAL = frozenset({str, bool, NoneType})
_encode = json.JSONEncoder(ensure_ascii=False, sort_keys=True, separators=(",", ":"), allow_nan=False).encode


def canonical(value: Any) -> str:
    """The one JSON text of a value: equal JSON gives equal text, on either database and after any round trip.

    Raises ValueError for a number that is not finite; ask `faults` first.
    """
    return _encode(normalise(value))


def sha256_hex(canonical_text: str) -> str:
    """The SHA-256 of a canonical text, in hexadecimal."""
    return hashlib.sha256(canonical_text.encode()).hexdigest()


def json_equal(before: Any, after: Any) -> bool:
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
            if type(old) not in _ALREADY_NORMAL and (new := normalise(old)) is not old
        }
        return {**value, **changed} if changed else value
    if isinstance(value, (list, tuple)):
        items = [item if type(item) in _ALREADY_NORMAL else normalise(item) for item in value]
        return value if all(map(is_, items, value)) else items
    if isinstance(value, int) and not isinstance(value, bool):
        return value if MIN_INTEGER <= value <= MAX_INTEGER else float(value)
    if isinstance(value, float) and value.is_integer():
        return _integral_to_int(value)
    return value


def _integral_to_int(value: float) -> int | float:
    # Through the shortest decimal, which is what both databases store: 2.0**60 is written 1.152921504606847e+18.
    whole = int(value) if abs(value) < 1e16 else int(Decimal(repr(value)))
    return whole if MIN_INTEGER <= whole <= MAX_INTEGER else value


def merge_json_objects(*objects: str) -> str:
    """One JSON object with the members of several object texts, in order and without parsing them.

    The texts are canonical (no space around them) and share no key: `splice(before, snapshot, after)`.
    """
    return "{" + ",".join([text[1:-1] for text in objects if text != "{}"]) + "}"
