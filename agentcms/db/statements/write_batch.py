"""Inserts and updates that are sent together, with SQL that is built once.

    batch = WriteBatch()
    batch.update(Agent, "id", agent.pk, {"name": "Concierge"})
    batch.insert(version)
    batch.send()

The statements must not need the results of each other. They send the signals of a save, and nothing else that
`Model.save()` does: no validation, no expressions, no inherited tables.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any, Self

from django.db import connection, models
from django.db.models.signals import post_save, pre_save

ColumnNames = tuple[str, ...]
Values = Mapping[str, Any]
Rows = list[tuple[Any, ...]]
Model = type[models.Model]
CountHandler = Callable[[int], None]

# Both drivers take the values of these fields unchanged. psycopg also takes timestamps and UUIDs.
UNCHANGED_FIELDS = (models.CharField, models.TextField, models.IntegerField, models.BooleanField)
UNCHANGED_ON_POSTGRESQL = (*UNCHANGED_FIELDS, models.DateTimeField, models.UUIDField)


def _ignore(count: int) -> None:
    pass


class WriteBatch:
    """Statements that are sent together, in order, inside a transaction.

    Signals and the functions that take the number of written rows are called when all statements were executed.
    """

    def __init__(self) -> None:
        self.statements: list[tuple[str, list[Any]]] = []
        self.handlers: list[Callable[[Rows], None]] = []

    def insert(self, instance: models.Model) -> Self:
        """Add the statement and the signals of `instance.save(force_insert=True)`. Send `pre_save` at once."""
        model: Model = type(instance)
        arguments = _signal_arguments(instance, None)
        pre_save.send(model, **arguments)
        names = tuple(
            field.attname for field in model._meta.concrete_fields if instance.pk is not None or not field.primary_key
        )

        def finish(keys: Rows) -> None:
            # The database numbers such a row, and RETURNING brings the number.
            if instance.pk is None:
                instance.pk = keys[0][0]
            instance._state.adding, instance._state.db = False, connection.alias
            post_save.send(model, created=True, **arguments)

        return self._add(_insert_sql(model, names), _values(model, names, vars(instance)), finish)

    def update(self, model: Model, column: str, key: object, values: Values, then: CountHandler = _ignore) -> Self:
        """Add an update of the rows whose column has this key. Send no signals.

        `values` are by attribute name. `then` is called with the number of updated rows.
        """
        names = tuple(values)
        return self.execute(_update_sql(model, column, names), [*_values(model, names, values), key], then)

    def execute(self, sql: str, parameters: Sequence[Any], then: CountHandler = _ignore) -> Self:
        """Add a statement with a RETURNING clause. `then` is called with the number of returned rows."""
        return self._add(sql, list(parameters), lambda rows: then(len(rows)))

    def prepend(self, batch: WriteBatch) -> None:
        """Send the statements of another batch before the statements of this one."""
        self.statements[:0] = batch.statements
        self.handlers[:0] = batch.handlers

    def send(self) -> None:
        """Send all statements, then call the signals and functions in the same order."""
        if not self.statements:
            return
        results = connection.run_statements(self.statements)  # type: ignore[attr-defined]
        for handle, rows in zip(self.handlers, results, strict=True):
            handle(rows)

    def _add(self, sql: str, parameters: list[Any], handle: Callable[[Rows], None]) -> Self:
        self.statements.append((sql, parameters))
        self.handlers.append(handle)
        return self


def insert_row(instance: models.Model) -> None:
    """Do what `instance.save(force_insert=True)` does."""
    WriteBatch().insert(instance).send()


@contextmanager
def send_save_signals(
    instance: models.Model, names: Iterable[str] | None = None, *, created: bool = False
) -> Iterator[None]:
    """Send `pre_save` before the block and `post_save` after it, unless the block raises.

    `names` are the fields that the block writes, or None for all of them.
    """
    arguments = _signal_arguments(instance, names)
    pre_save.send(type(instance), **arguments)
    yield
    post_save.send(type(instance), created=created, **arguments)


def _signal_arguments(instance: models.Model, names: Iterable[str] | None) -> dict[str, Any]:
    update_fields = None if names is None else frozenset(names)
    return {"instance": instance, "raw": False, "using": connection.alias, "update_fields": update_fields}


@cache
def _insert_sql(model: Model, names: ColumnNames) -> str:
    columns = _quoted_columns(model, names)
    (key,) = _quoted_columns(model, [model._meta.pk.attname])
    placeholders = ", ".join(["%s"] * len(names))
    return f"INSERT INTO {_quoted_table(model)} ({', '.join(columns)}) VALUES ({placeholders}) RETURNING {key}"  # noqa: S608


@cache
def _update_sql(model: Model, column: str, names: ColumnNames) -> str:
    *columns, key = _quoted_columns(model, [*names, column])
    assignments = ", ".join(f"{name} = %s" for name in columns)
    # RETURNING, because `run_statements` returns rows, and no number of updated ones.
    return f"UPDATE {_quoted_table(model)} SET {assignments} WHERE {key} = %s RETURNING 1"  # noqa: S608


def _quoted_table(model: Model) -> str:
    return connection.ops.quote_name(model._meta.db_table)


def _quoted_columns(model: Model, names: Iterable[str]) -> list[str]:
    return [connection.ops.quote_name(_fields_by_name(model)[name].column) for name in names]


def _values(model: Model, names: ColumnNames, values: Values) -> list[Any]:
    converters = _converters(model, names, connection.vendor)
    return [
        values[name] if convert is None else convert(values[name], connection)
        for name, convert in zip(names, converters, strict=True)
    ]


@cache
def _converters(model: Model, names: ColumnNames, vendor: str) -> list[Callable[..., Any] | None]:
    """Return, for each attribute, the function that converts its value for the driver, or None if nothing does."""
    unchanged = UNCHANGED_ON_POSTGRESQL if vendor == "postgresql" else UNCHANGED_FIELDS
    converters: list[Callable[..., Any] | None] = []
    for name in names:
        field = _fields_by_name(model)[name]
        target = field.target_field if isinstance(field, models.ForeignKey) else field
        converters.append(None if isinstance(target, unchanged) else target.get_db_prep_save)
    return converters


@cache
def _fields_by_name(model: Model) -> dict[str, Any]:
    return {field.attname: field for field in model._meta.concrete_fields}
