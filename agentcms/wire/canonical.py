"""Canonical JSON: one text for equal values."""

from __future__ import annotations

import hashlib
import json
from decimal import Decimal
from operator import is_
from types import NoneType

from agentcms.wire.validation import MAX_INTEGER, MIN_INTEGER

# Checked first in the two loops over all values: most values have one of these types.
_ALREADY_NORMAL = frozenset({str, bool, NoneType})
_encode = json.JSONEncoder(ensure_ascii=False, sort_keys=True, separators=(",", ":"), allow_nan=False).encode


def canonical(value: object) -> str:
    """Return the canonical JSON text of a value.

    Equal JSON gives equal text, on either database and after any round trip. Raise ValueError for a number that
    is not finite; `find_json_faults` reports it.
    """
    return _encode(normalize(value))


def text_or_json(value: object) -> str:
    """Return a text as it is, and any other value as JSON that people can read. It is not canonical."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def comparable_texts(first: object, second: object) -> tuple[str, str]:
    """Return two values as texts: equal ones if they are the same JSON. Beside a text, JSON is as people read it."""
    if isinstance(first, str) or isinstance(second, str):
        return text_or_json(first), text_or_json(second)
    return canonical(first), canonical(second)


def sha256_hex(canonical_text: str) -> str:
    """Return the SHA-256 of a canonical text, in hexadecimal."""
    return hashlib.sha256(canonical_text.encode()).hexdigest()


def json_equal(before: object, after: object) -> bool:
    """Return True if two values are the same JSON: `true` is not `1`, and the order of keys does not matter."""
    # Python's == is not enough: True == 1, and unequal numbers may be one number in JSON. It is exact for texts and
    # where both values of one type are empty.
    if type(before) is type(after) and (isinstance(before, str) or not (before or after)):
        return bool(before == after)
    return before is after or canonical(before) == canonical(after)


def normalize(value: object) -> object:
    """Return the value with one Python number for each JSON number, or the same object where nothing changes.

    An integer or an integral float becomes an int within 64 bits and a float beyond. PostgreSQL's jsonb stores
    decimals, so it returns 1e22 as a long integer and -0.0 as 0.0.
    """
    if isinstance(value, dict):
        changed = {
            key: new
            for key, old in value.items()
            if type(old) not in _ALREADY_NORMAL and (new := normalize(old)) is not old
        }
        return {**value, **changed} if changed else value
    if isinstance(value, (list, tuple)):
        items = [item if type(item) in _ALREADY_NORMAL else normalize(item) for item in value]
        return value if all(map(is_, items, value)) else items
    if isinstance(value, int) and not isinstance(value, bool):
        return value if MIN_INTEGER <= value <= MAX_INTEGER else float(value)
    if isinstance(value, float) and value.is_integer():
        return _integral_to_int(value)
    return value


def _integral_to_int(value: float) -> int | float:
    # Convert the shortest decimal, which both databases store: 2.0**60 is written 1.152921504606847e+18.
    whole = int(value) if abs(value) < 1e16 else int(Decimal(repr(value)))
    return whole if MIN_INTEGER <= whole <= MAX_INTEGER else value


def merge_json_objects(*objects: str) -> str:
    """Return the text of one JSON object with the members of several, in order, without parsing them.

    The texts must be canonical and share no key.
    """
    return "{" + ",".join([text[1:-1] for text in objects if text != "{}"]) + "}"
