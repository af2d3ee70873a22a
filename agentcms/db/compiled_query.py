"""Queries that Django builds once: building one takes several times as long as running it."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import cache
from typing import Any, NamedTuple
from uuid import UUID

from django.db import connection
from django.db.models import Model, QuerySet
from django.db.models.expressions import RawSQL

# What stands for a parameter while its query is built; nobody's values.
_STAND_INS: dict[type, Callable[[int], Any]] = {
    str: lambda number: f"\x01parameter {number}\x01",
    int: lambda number: -1_618_033_988 - number,
    UUID: lambda number: UUID(int=0x1618033988 + number),
}

# A part of the rows that each run names: `queryset[WINDOW]`, of the query itself or of one inside it.
WINDOW = slice(161_803_398, 161_803_398 + 271_828_182)
_WINDOW_SQL = "LIMIT 271828182 OFFSET 161803398"

Row = tuple[Any, ...]
Converters = list[tuple[int, Any, Any]]  # of a column: its place, its converters, and what they ask for


class CompiledQuery:
    """A query of values, written with the ORM, whose SQL is kept; each run fills in its parameters only.

    `build` takes the variant and then the parameters, by name, and gives a `values_list()`; the variant decides what
    the SQL looks like, the parameters are the values in it:

        find = Prepared(lambda newest, name: …filter(name=name).values_list("pk"), name=str)
        find(True, name="x")
    """

    def __init__(self, build: Callable[..., QuerySet[Any, Any]], **parameters: type) -> None:
        self.build = build
        self.parameters = parameters
        self.compiled: dict[tuple[str, Hashable], tuple[str, list[Any], Converters]] = {}

    def __call__(
        self, variant: Hashable = None, /, *, limit: tuple[int, int] | None = None, **values: Any
    ) -> list[Row]:
        """The rows; `limit` is the WINDOW: how many, after how many."""
        asked = self.bind(variant, limit=limit, **values)
        rows: list[Row] = connection.rows(asked.sql, asked.parameters)  # type: ignore[attr-defined]
        return asked.converted(rows)

    def bind(self, variant: Hashable = None, /, *, limit: tuple[int, int] | None = None, **values: Any) -> BoundQuery:
        """What a call would ask, to go with others by `at_once`."""
        sql, template, converters = self._compiled(variant)
        if limit is not None:
            values["limit"], values["offset"] = limit
        return BoundQuery(sql, [each.of(values) if isinstance(each, _Slot) else each for each in template], converters)

    def _compiled(self, variant: Hashable) -> tuple[str, list[Any], Converters]:
        key = (connection.vendor, variant)
        if key not in self.compiled:
            self.compiled[key] = self._compile(variant)
        return self.compiled[key]

    def _compile(self, variant: Hashable) -> tuple[str, list[Any], Converters]:
        stand_ins = {name: _STAND_INS[kind](n) for n, (name, kind) in enumerate(self.parameters.items())}
        compiler = self.build(variant, **stand_ins).query.get_compiler(connection=connection)
        sql, parameters = compiler.as_sql()
        slots = {value: _Slot(name) for name, value in stand_ins.items()}
        slots |= {value.hex: _Slot(name, True) for name, value in stand_ins.items() if isinstance(value, UUID)}
        template = [slots.get(each, each) if isinstance(each, Hashable) else each for each in parameters]
        before, found, after = sql.partition(_WINDOW_SQL)
        if found:
            place = before.count("%s")
            template[place:place] = [_Slot("limit"), _Slot("offset")]
            sql = f"{before}LIMIT %s OFFSET %s{after}"
        converters = compiler.get_converters([column for column, _, _ in compiler.select])
        return sql, template, [(index, calls, column) for index, (calls, column) in converters.items()]


class BoundQuery(NamedTuple):
    """A prepared query with its parameters."""

    sql: str
    parameters: list[Any]
    converters: Converters

    def converted(self, rows: list[Row]) -> list[Row]:
        return [_converted(row, self.converters) for row in rows] if self.converters else rows


def run_together(*asked: BoundQuery) -> list[list[Row]]:
    """The rows of each query, in order, all sent at once, inside a transaction.

    Each sees what was committed when its turn came: one that follows a wait for a lock sees what was waited for.
    """
    answers = connection.rows_of_each([(each.sql, each.parameters) for each in asked])  # type: ignore[attr-defined]
    return [each.converted(rows) for each, rows in zip(asked, answers, strict=True)]


@cache
def model_columns(model: type[Model], path: str = "") -> list[str]:
    """What to ask for by `values_list` so that `from_db` makes the model's objects of it."""
    return [f"{path}{field.attname}" for field in model._meta.concrete_fields]


def json_array_items(text: str, kind: str = "text") -> RawSQL:
    """The items of a JSON list, for `__in`: one parameter however many, where PostgreSQL takes no more than 65,535."""
    if connection.vendor == "postgresql":
        return RawSQL(f"SELECT jsonb_array_elements_text(%s::jsonb)::{kind}", [text])  # noqa: S611  no input in it
    return RawSQL("SELECT value FROM json_each(%s)", [text])


class _Slot(NamedTuple):
    """Where a parameter goes; SQLite keeps a UUID as its hexadecimal digits."""

    name: str
    as_hex: bool = False

    def of(self, values: dict[str, Any]) -> Any:
        value = values[self.name]
        return value.hex if self.as_hex else value


def _converted(row: Row, converters: Converters) -> Row:
    values = list(row)
    for index, calls, column in converters:
        for call in calls:
            values[index] = call(values[index], column, connection)
    return tuple(values)
