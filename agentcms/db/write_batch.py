"""Rows written with SQL that is built once: what every edit writes, and Django builds anew for each.

Writes that need nothing of one another go together, and are waited for once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any, Self

from django.db import connection, models
from django.db.models.signals import post_save, pre_save

Columns = tuple[str, ...]
Values = Mapping[str, Any]
Rows = list[tuple[Any, ...]]
Model = type[models.Model]

# Both drivers take these as they are; psycopg also knows times and ids.
PLAIN = (models.CharField, models.TextField, models.IntegerField, models.BooleanField)
PLAIN_ON_POSTGRESQL = (*PLAIN, models.DateTimeField, models.UUIDField)


class WriteBatch:
    """Writes that need nothing of one another, sent in order, at once, inside a transaction.

    What follows a write, as its signal does, comes when all are written.
    """

    def __init__(self) -> None:
        self.statements: list[tuple[str, list[Any]]] = []
        self.followed: list[Callable[[Rows], None]] = []

    def insert(self, row: Any) -> Self:
        """What `row.save(force_insert=True)` does."""
        model: Model = type(row)
        told: dict[str, Any] = {"instance": row, "raw": False, "using": connection.alias, "update_fields": None}
        pre_save.send(model, **told)
        names = tuple(
            field.attname for field in model._meta.concrete_fields if row.pk is not None or not field.primary_key
        )

        def inserted(keys: Rows) -> None:
            if row.pk is None:
                row.pk = keys[0][0]
            row._state.adding, row._state.db = False, connection.alias
            post_save.send(model, created=True, **told)

        return self._add(_insert_sql(model, names), _values(model, names, vars(row)), inserted)

    def update(
        self, model: Model, column: str, key: Any, values: Values, then: Callable[[int], None] = lambda found: None
    ) -> Self:
        """Write values, by attribute, to the rows whose column is the key; `then` takes how many. Sends no signal."""
        names = tuple(values)
        return self.execute(_update_sql(model, column, names), [*_values(model, names, values), key], then)

    def execute(self, sql: str, parameters: Sequence[Any], then: Callable[[int], None] = lambda found: None) -> Self:
        """Any statement that returns a row for each that it wrote; `then` takes how many. Sends no signal."""
        return self._add(sql, list(parameters), lambda found: then(len(found)))

    def _add(self, sql: str, parameters: list[Any], then: Callable[[Rows], None]) -> Self:
        self.statements.append((sql, parameters))
        self.followed.append(then)
        return self

    def prepend(self, batch: WriteBatch) -> None:
        """Send the statements of another batch before those of this one."""
        self.statements[:0] = batch.statements
        self.followed[:0] = batch.followed

    def send(self) -> None:
        if not self.statements:
            return
        answers = connection.run_statements(self.statements)  # type: ignore[attr-defined]
        for then, answer in zip(self.followed, answers, strict=True):
            then(answer)


def insert_row(row: Any) -> None:
    """What `row.save(force_insert=True)` does."""
    WriteBatch().insert(row).send()


@contextmanager
def send_save_signals(row: Any, names: Iterable[str] | None = None, *, created: bool = False) -> Iterator[None]:
    """Send `pre_save` of a row before the block and `post_save` after it, unless the block raises.

    `names` are the fields that the block writes, or None for all of them.
    """
    arguments: dict[str, Any] = {
        "instance": row,
        "raw": False,
        "using": connection.alias,
        "update_fields": None if names is None else frozenset(names),
    }
    pre_save.send(type(row), **arguments)
    yield
    post_save.send(type(row), created=created, **arguments)


def update_where(model: Model, column: str, key: Any, values: Values) -> int:
    """Write values, by attribute, to the rows whose column is the key; how many there were. Sends no signal."""
    counts: list[int] = []
    WriteBatch().update(model, column, key, values, counts.append).send()
    return counts[0]


@cache
def _insert_sql(model: Model, names: Columns) -> str:
    columns = _quoted(model, names)
    table, key = connection.ops.quote_name(model._meta.db_table), _quoted(model, [model._meta.pk.attname])[0]
    places = ", ".join(["%s"] * len(names))
    return f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({places}) RETURNING {key}"  # noqa: S608


@cache
def _update_sql(model: Model, column: str, names: Columns) -> str:
    *columns, key = _quoted(model, [*names, column])
    assigned = ", ".join(f"{each} = %s" for each in columns)
    return f"UPDATE {connection.ops.quote_name(model._meta.db_table)} SET {assigned} WHERE {key} = %s RETURNING 1"  # noqa: S608


def _quoted(model: Model, names: Iterable[str]) -> list[str]:
    return [connection.ops.quote_name(_fields(model)[name].column) for name in names]


def _values(model: Model, names: Columns, values: Values) -> list[Any]:
    preparations = _preparations(model, names, connection.vendor)
    return [
        values[name] if prepare is None else prepare(values[name], connection)
        for name, prepare in zip(names, preparations, strict=True)
    ]


@cache
def _preparations(model: Model, names: Columns, vendor: str) -> list[Callable[..., Any] | None]:
    """What turns each attribute into what the driver takes; None where nothing has to."""
    plain = PLAIN_ON_POSTGRESQL if vendor == "postgresql" else PLAIN
    found = []
    for name in names:
        field = _fields(model)[name]
        target = field.target_field if isinstance(field, models.ForeignKey) else field
        found.append(None if isinstance(target, plain) else target.get_db_prep_save)
    return found


@cache
def _fields(model: Model) -> dict[str, Any]:
    return {field.attname: field for field in model._meta.concrete_fields}
