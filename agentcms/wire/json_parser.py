"""A strict JSON parser: accepted values round-trip exactly, anything else is rejected with its path."""

from __future__ import annotations

import json
from collections import Counter
from itertools import islice
from typing import Any

from agentcms.wire.json_types import JSONObject, JSONValue
from agentcms.wire.validation import (
    MAX_INTEGER,
    MAX_JSON_DEPTH,
    MIN_INTEGER,
    NOT_FINITE_MESSAGE,
    TOO_BIG_MESSAGE,
    TOO_DEEP_MESSAGE,
    DuplicateKeys,
    InvalidValue,
    JSONFault,
    find_json_faults,
    is_double,
)

MAX_FAULTS = 100
# A save takes some microseconds for each value, while it keeps other writers waiting. A body of 3 MB with 1.5 million
# numbers took 8 s.
MAX_VALUES = 100_000
_SAFE_DIGITS, _MAX_DIGITS = 18, 310  # up to 18 characters always fit 64 bits; more than 310 never fit a double
_TOO_SMALL_MESSAGE = "A number must not be so small that a double turns it into zero."


class InvalidJSON(ValueError):
    """A text that is not valid JSON here. `faults` lists at most `MAX_FAULTS` faults; the message is the first."""

    def __init__(self, faults: list[JSONFault]) -> None:
        first = faults[0]
        super().__init__(f"{first.field}: {first.message}" if first.field else first.message)
        self.faults = faults


def parse_strict_json(data: bytes, levels: int = MAX_JSON_DEPTH) -> JSONValue:
    """Return the value of a JSON text in UTF-8, with at most MAX_VALUES values, nested at most `levels` deep.

    Raise InvalidJSON, with line and column for a syntax error and with the path for any other fault.
    """
    value = _decode_json(_decode_utf8(data))
    # The first count is fast, and never too low. It includes the commas of texts.
    if sum(map(data.count, (b",", b"[", b"{"))) >= MAX_VALUES and count_values(value) > MAX_VALUES:
        raise InvalidJSON([JSONFault("", f"JSON must not have more than {MAX_VALUES:,} values.")])
    faults = list(islice(find_json_faults(value, levels=levels), MAX_FAULTS))
    if faults:
        raise InvalidJSON(faults)
    return value


def parse_typed_json(text: str) -> JSONValue:
    """Return the value of a JSON text that somebody typed, as `parse_strict_json` does. Raise InvalidJSON."""
    # The parser reports half of a surrogate pair, at which a strict encoding would raise.
    return parse_strict_json(text.encode("utf-8", "surrogatepass"))


def count_values(value: object) -> int:
    """Return the number of values in a parsed value, including itself."""
    count = 1
    containers: list[Any] = [[value]]
    while containers:
        container = containers.pop()
        items = container.values() if isinstance(container, dict) else container
        inner = [item for item in items if isinstance(item, dict | list)]
        count += sum(map(len, inner))
        containers += inner
    return count


def _decode_utf8(data: bytes) -> str:
    if data.startswith(b"\xef\xbb\xbf"):
        raise InvalidJSON([JSONFault("", "The JSON must not begin with a byte order mark.")])
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        before = data[: error.start].decode()
        line, column = before.count("\n") + 1, len(before) - before.rfind("\n")
        message = f"The JSON is not valid UTF-8 at line {line}, column {column}."
        raise InvalidJSON([JSONFault("", message)]) from None


def _decode_json(text: str) -> object:
    try:
        return _DECODER.decode(text)
    except json.JSONDecodeError as error:
        reason = error.msg.removesuffix(" at").rstrip(":")
        message = f"The JSON cannot be read at line {error.lineno}, column {error.colno}: {reason}."
        raise InvalidJSON([JSONFault("", message)]) from None
    except RecursionError:
        raise InvalidJSON([JSONFault("", TOO_DEEP_MESSAGE)]) from None


# The hooks return a marker instead of an invalid value, so that `find_json_faults` can report its path.


def _build_object(pairs: list[tuple[str, Any]]) -> JSONObject:
    members = dict(pairs)
    if len(members) == len(pairs):
        return members
    duplicates = DuplicateKeys(members)
    duplicates.names = [key for key, count in Counter(key for key, _ in pairs).items() if count > 1]
    return duplicates


def _parse_integer(digits: str) -> int | float | InvalidValue:
    # Check the length first: Python refuses to convert thousands of digits.
    if len(digits) <= _SAFE_DIGITS:
        return int(digits)
    if len(digits) > _MAX_DIGITS:
        return InvalidValue(TOO_BIG_MESSAGE)
    number = int(digits)
    if MIN_INTEGER <= number <= MAX_INTEGER:
        return number
    # JavaScript and PostgreSQL write the double 1e20 with all its digits.
    return float(number) if is_double(number) else InvalidValue(TOO_BIG_MESSAGE)


def _parse_float(digits: str) -> float | InvalidValue:
    number = float(digits)
    if number - number != 0:
        return InvalidValue(NOT_FINITE_MESSAGE)
    if number == 0 and digits.lower().partition("e")[0].strip("-0."):
        return InvalidValue(_TOO_SMALL_MESSAGE)
    return number


def _parse_constant(name: str) -> InvalidValue:
    return InvalidValue(f"{name} is not JSON.")


_DECODER = json.JSONDecoder(
    object_pairs_hook=_build_object, parse_int=_parse_integer, parse_float=_parse_float, parse_constant=_parse_constant
)
