"""Filters of searches by the metadata of documents.

    {"product": "router", "year": {"$gte": 2024}, "$or": [{"region": "eu"}, {"tags": {"$contains": "global"}}]}

A missing key is the same as null. Values are equal only if they have the same type, and only numbers and only texts
have an order. `$contains` finds a part of a text, or an item of a list.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from operator import ge, gt, le, lt
from typing import Any

from agentcms.errors import BadRequest
from agentcms.wire.json_types import JSONMapping
from agentcms.wire.validation import find_json_faults

MAX_FILTER_DEPTH = 8
MAX_CONDITIONS = 100
MAX_LISTED_VALUES = 100  # of $in and $nin
MAX_FILTER_TEXT_LENGTH = 1000

is_filterable_key = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,63}").fullmatch

Scalar = str | int | float | bool | None

ORDERS: dict[str, Callable[[Any, Any], bool]] = {"$gt": gt, "$gte": ge, "$lt": lt, "$lte": le}
FILTER_OPERATORS = ("$eq", "$ne", "$in", "$nin", *ORDERS, "$contains", "$not")
COMBINATIONS = ("$and", "$or", "$not")


class FilterError(ValueError):
    """A filter that cannot be used. `field` is the path of its fault."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(f"{field}: {message}" if field else message)
        self.field, self.message = field, message


@dataclass(frozen=True)
class KeyComparison:
    """A comparison of the value of a key: `$eq`, `$contains` or an order."""

    key: str
    operator: str
    value: Scalar


@dataclass(frozen=True)
class AllOf:
    """Filters that all match."""

    parts: tuple[Filter, ...]


@dataclass(frozen=True)
class AnyOf:
    """Filters of which one matches."""

    parts: tuple[Filter, ...]


@dataclass(frozen=True)
class Not:
    """A filter that does not match."""

    part: Filter


Filter = KeyComparison | AllOf | AnyOf | Not
EVERYTHING = AllOf(())


def key_error(key: object) -> str:
    """Return what is wrong with a filterable key, or a blank text."""
    if isinstance(key, str) and is_filterable_key(key):
        return ""
    return (
        f"'{key}' cannot be a filterable key. Begin with a letter or '_', then use letters, digits, '_', '-' and '.', "
        "64 characters at most."
    )


def parse_filter(value: object, keys: Collection[str] | None) -> Filter:
    """Return the filter of a JSON value. Raise FilterError for other operators and keys than the declared ones.

    Without `keys`, every key is taken that could be declared.
    """
    if value is None:
        return EVERYTHING
    # A model may have written the filter, so it did not pass the parser of requests.
    if faults := [*find_json_faults(value)]:
        raise FilterError(*faults[0])
    return FilterParser(None if keys is None else {*keys}).parse(value, "", MAX_FILTER_DEPTH)


def keys_of_filter(condition: Filter) -> list[str]:
    """Return the keys that a filter compares, each once."""
    if isinstance(condition, KeyComparison):
        return [condition.key]
    parts = (condition.part,) if isinstance(condition, Not) else condition.parts
    return [*dict.fromkeys(key for part in parts for key in keys_of_filter(part))]


def parse_filter_of_body(value: object, keys: Collection[str]) -> Filter:
    """Return the filter of a request. Raise BadRequest."""
    try:
        return parse_filter(value, keys)
    except FilterError as error:
        path = f"filter.{error.field}" if error.field else "filter"
        raise BadRequest("request body", [(path, error.message)]) from None


class FilterParser:
    """A parser of one filter, which counts its conditions. Empty filters and lists are conditions too."""

    def __init__(self, keys: set[str] | None) -> None:
        self.keys = keys
        self.conditions = 0

    def count(self, path: str) -> None:
        """Count a condition. Raise FilterError if there are too many."""
        self.conditions += 1
        if self.conditions > MAX_CONDITIONS:
            raise FilterError(path, f"A filter has at most {MAX_CONDITIONS} conditions.")

    def parse(self, value: object, path: str, depth: int) -> Filter:
        if not isinstance(value, Mapping):
            raise FilterError(path, 'A filter is an object, such as {"year": {"$gte": 2024}}.')
        if depth == 0:
            raise FilterError(path, f"A filter is nested at most {MAX_FILTER_DEPTH} levels deep.")
        # A list of thousands of empty filters would be a large query too.
        if not value:
            self.count(path)
        return all_of(self.parse_member(name, member, join(path, name), depth) for name, member in value.items())

    def parse_member(self, name: str, value: object, path: str, depth: int) -> Filter:
        if name == "$not":
            return Not(self.parse(value, path, depth - 1))
        if name in COMBINATIONS:
            if not isinstance(value, list) or not value:
                raise FilterError(path, "Give a list of filters that is not empty.")
            parts = tuple(self.parse(item, f"{path}[{i}]", depth - 1) for i, item in enumerate(value))
            return AllOf(parts) if name == "$and" else AnyOf(parts)
        self.check_key(name, path)
        if isinstance(value, Mapping):
            return self.parse_operators(name, value, path, depth)
        return self.compare(name, "$eq", value, path)

    def check_key(self, name: str, path: str) -> None:
        if name.startswith("$"):
            raise FilterError(path, f"Unknown operator '{name}'. Use {', '.join(COMBINATIONS)} or a key.")
        if self.keys is None and (message := key_error(name)):
            raise FilterError(path, message)
        if self.keys is not None and name not in self.keys:
            known = f"Use {', '.join(sorted(self.keys))}." if self.keys else "No key is declared."
            raise FilterError(path, f"'{name}' is not a filterable key of this knowledge base. {known}")

    def parse_operators(self, key: str, value: JSONMapping, path: str, depth: int) -> Filter:
        if not value or depth == 0:
            raise FilterError(path, f"Give a value, or an operator: {', '.join(FILTER_OPERATORS)}.")
        return all_of(
            self.parse_operator(key, name, operand, join(path, name), depth) for name, operand in value.items()
        )

    def parse_operator(self, key: str, name: str, operand: object, path: str, depth: int) -> Filter:
        if name == "$ne":
            return Not(self.compare(key, "$eq", operand, path))
        if name == "$not":
            if not isinstance(operand, Mapping):
                raise FilterError(path, "Give an object with operators.")
            return Not(self.parse_operators(key, operand, path, depth - 1))
        if name in ("$in", "$nin"):
            if not isinstance(operand, list) or len(operand) > MAX_LISTED_VALUES:
                raise FilterError(path, f"Give a list of at most {MAX_LISTED_VALUES} values.")
            if not operand:
                self.count(path)
            any_value = AnyOf(tuple(self.compare(key, "$eq", item, f"{path}[{i}]") for i, item in enumerate(operand)))
            return any_value if name == "$in" else Not(any_value)
        if name not in FILTER_OPERATORS:
            raise FilterError(path, f"Unknown operator '{name}'. Use {', '.join(FILTER_OPERATORS)}.")
        return self.compare(key, name, operand, path)

    def compare(self, key: str, operator: str, value: Any, path: str) -> KeyComparison:
        self.count(path)
        if isinstance(value, Mapping | list):
            raise FilterError(path, "Give a text, a number, true, false or null.")
        if isinstance(value, str) and len(value) > MAX_FILTER_TEXT_LENGTH:
            raise FilterError(path, f"A text has at most {MAX_FILTER_TEXT_LENGTH} characters.")
        if operator in ORDERS and (isinstance(value, bool) or not isinstance(value, str | int | float)):
            raise FilterError(path, f"{operator} compares numbers or texts.")
        if operator == "$contains" and value is None:
            raise FilterError(path, "Give a text, a number, true or false.")
        return KeyComparison(key, operator, value)


def all_of(parts: Iterable[Filter]) -> Filter:
    parts = tuple(parts)
    return parts[0] if len(parts) == 1 else AllOf(parts)


def join(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def metadata_matches(condition: Filter, metadata: JSONMapping) -> bool:
    """Return whether metadata matches a filter. The queries of the databases return the same."""
    match condition:
        case AllOf(parts):
            return all(metadata_matches(part, metadata) for part in parts)
        case AnyOf(parts):
            return any(metadata_matches(part, metadata) for part in parts)
        case Not(part):
            return not metadata_matches(part, metadata)
        case KeyComparison(key, operator, value):
            return compare_value(metadata.get(key), operator, value)


def compare_value(stored: object, operator: str, value: Scalar) -> bool:
    if operator == "$contains":
        if isinstance(stored, list):
            return any(compare_value(item, "$eq", value) for item in stored)
        return isinstance(stored, str) and isinstance(value, str) and value in stored
    if not is_same_type(stored, value):
        return False
    return bool(stored == value) if operator == "$eq" else ORDERS[operator](stored, value)


def is_same_type(stored: object, value: Scalar) -> bool:
    # In Python, True is the integer 1; in JSON they differ.
    if isinstance(stored, bool) or isinstance(value, bool):
        return isinstance(stored, bool) and isinstance(value, bool)
    if isinstance(value, str) or value is None:
        return type(stored) is type(value)
    return isinstance(stored, int | float)
