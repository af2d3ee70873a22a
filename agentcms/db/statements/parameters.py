"""Types of the values that are filled into a compiled query."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Hashable, Iterable
from operator import attrgetter
from typing import Any, Generic, TypeVar, get_type_hints
from uuid import UUID

from django.db import connection
from django.db.models.expressions import RawSQL

T = TypeVar("T")

Reader = Callable[[T], Any]

# An improbable slice: `LIMIT` and `OFFSET` are numbers in the SQL text and not parameters.
WINDOW = slice(161_803_398, 161_803_398 + 271_828_182)
WINDOW_SQL = "LIMIT 271828182 OFFSET 161803398"


class Parameter(Generic[T]):
    """A type of values: the placeholder during compilation, and the form in which the driver gets a value."""

    def variant(self, value: T) -> Hashable:
        """Return the part of a value that changes the SQL. The query is compiled once for each variant."""
        return None

    def placeholder(self, number: int, variant: Hashable) -> T:
        """Return a value for the queryset that no other parameter has."""
        raise NotImplementedError

    def readers(self, placeholder: T) -> dict[Hashable, Reader[T]]:
        """Return, by each parameter that Django may compile the placeholder to, the function that reads a value."""
        return {placeholder: _unchanged}


class TextParameter(Parameter[str]):
    def placeholder(self, number: int, variant: Hashable) -> str:
        # With a control character, which no text in the code of a query has: an equal one would become a value too.
        return f"\x01parameter {number}\x01"


class IntegerParameter(Parameter[int]):
    def placeholder(self, number: int, variant: Hashable) -> int:
        # Within 32 bits: Django compiles a number beyond the range of a column to a query without rows.
        return 1_618_033_988 + number


class UUIDParameter(Parameter[UUID]):
    def placeholder(self, number: int, variant: Hashable) -> UUID:
        return UUID(int=0x1618033988 + number)

    def readers(self, placeholder: UUID) -> dict[Hashable, Reader[UUID]]:
        return {placeholder: _unchanged, placeholder.hex: attrgetter("hex")}  # SQLite stores the digits


class ArrayParameter(Parameter[list[T]]):
    """A list for `json_array_items`."""

    def __init__(self, item: Parameter[T]) -> None:
        self.item = item

    def placeholder(self, number: int, variant: Hashable) -> list[T]:
        return [self.item.placeholder(number, variant)]

    def readers(self, placeholder: list[T]) -> dict[Hashable, Reader[list[T]]]:
        return {_json_array(placeholder): _json_array}


class WindowParameter(Parameter[slice]):
    """The rows of one page: `queryset[window]`. A query has at most one."""

    def placeholder(self, number: int, variant: Hashable) -> slice:
        return WINDOW

    def readers(self, placeholder: slice) -> dict[Hashable, Reader[slice]]:
        return {}


PARAMETERS: dict[Any, Parameter[Any]] = {
    str: TextParameter(),
    int: IntegerParameter(),
    UUID: UUIDParameter(),
    list[str]: ArrayParameter(TextParameter()),
    list[UUID]: ArrayParameter(UUIDParameter()),
    slice: WindowParameter(),
}


def parameters_of(function: Callable[..., Any]) -> dict[str, Parameter[Any]]:
    """Return the keyword-only parameters of a function by name. Raise TypeError for a type that is not supported."""
    hints = get_type_hints(function, include_extras=True)
    keywords = [item for item in inspect.signature(function).parameters.values() if item.kind is item.KEYWORD_ONLY]
    return {item.name: _parameter_for(hints[item.name]) for item in keywords}


def _parameter_for(hint: object) -> Parameter[Any]:
    known = [item for item in getattr(hint, "__metadata__", ()) if isinstance(item, Parameter)]
    if not known and hint not in PARAMETERS:
        raise TypeError(f"A compiled query takes no {hint}. Annotate the type with a Parameter.")
    return known[0] if known else PARAMETERS[hint]


def json_array_items(values: Iterable[str | UUID], sql_type: str = "text") -> RawSQL:
    """Return a subquery with these values, for `__in`.

    It has one parameter for any number of values. PostgreSQL allows at most 65,535 parameters.
    """
    text = _json_array(values)
    if connection.vendor == "postgresql":
        # With a cast, because PostgreSQL does not compare texts with UUIDs.
        sql = f"SELECT jsonb_array_elements_text(%s::jsonb)::{sql_type}"
        return RawSQL(sql, [text])  # noqa: S611  no input in it
    return RawSQL("SELECT value FROM json_each(%s)", [text])


def _json_array(values: Iterable[Any]) -> str:
    return json.dumps([value.hex if isinstance(value, UUID) else value for value in values])


def _unchanged(value: T) -> T:
    return value
