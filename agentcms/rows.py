"""Rows written with SQL that is built once: what every edit writes, and Django builds anew for each."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from typing import Any

from django.db import connection, models
from django.db.models.signals import post_save, pre_save

Columns = tuple[str, ...]
Model = type[models.Model]

# Both drivers take these as they are; psycopg also knows times and ids.
PLAIN = (models.CharField, models.TextField, models.IntegerField, models.BooleanField)
PLAIN_ON_POSTGRESQL = (*PLAIN, models.DateTimeField, models.UUIDField)


def insert(row: Any) -> None:
    """What `row.save(force_insert=True)` does."""
    model: Model = type(row)
    told: dict[str, Any] = {"instance": row, "raw": False, "using": connection.alias, "update_fields": None}
    pre_save.send(model, **told)
    names = tuple(
        field.attname for field in model._meta.concrete_fields if row.pk is not None or not field.primary_key
    )
    key = _run(_insert_sql(model, names), _values(model, names, vars(row)))[0][0]
    if row.pk is None:
        row.pk = key
    row._state.adding, row._state.db = False, connection.alias
    post_save.send(model, created=True, **told)


def save(row: Any, names: Iterable[str]) -> None:
    """What `row.save(force_update=True, update_fields=names)` does. No expressions.

    Raises the model's DoesNotExist where the row vanished.
    """
    model, names = type(row), tuple(names)
    with announced(row, names):
        if not update(model, model._meta.pk.attname, row.pk, {name: getattr(row, name) for name in names}):
            raise model.DoesNotExist(f"{model.__name__} {row.pk} was deleted meanwhile.")


@contextmanager
def announced(row: Any, names: Iterable[str]) -> Iterator[None]:
    """Around what writes these fields of a row: the signals of a save."""
    told: dict[str, Any] = {
        "instance": row,
        "raw": False,
        "using": connection.alias,
        "update_fields": frozenset(names),
    }
    pre_save.send(type(row), **told)
    yield
    post_save.send(type(row), created=False, **told)


def update(model: Model, column: str, key: Any, values: Mapping[str, Any]) -> int:
    """Write values, by attribute, to the rows whose column is the key; how many there were. Sends no signal."""
    names = tuple(values)
    return len(_run(_update_sql(model, column, names), [*_values(model, names, values), key]))


def _run(sql: str, parameters: list[Any]) -> list[tuple[Any, ...]]:
    written: list[tuple[Any, ...]] = connection.rows(sql, parameters)  # type: ignore[attr-defined]
    return written


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


def _values(model: Model, names: Columns, values: Mapping[str, Any]) -> list[Any]:
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
