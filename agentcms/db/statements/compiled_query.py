"""Querysets that are compiled once per process.

    @compiled_query
    def agents_named(column: str, *, user: CallerParam, name: str) -> QuerySet[Agent]:
        return Agent.objects.for_user(user).filter(name=name).order_by(column)

    agents = agents_named("created_at", user=request.user, name="Concierge")

The arguments before `*` decide what the SQL looks like: it is compiled once for each combination of them. The
keyword arguments after `*` are values that each execution fills in. `parameters` has their types.

During compilation the function is called with placeholders instead of values, so it must not look at them.
A queryset of objects returns objects, with those of `select_related()` and `annotate()`. `values_list()` returns
tuples, or values with `flat=True`.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from functools import cached_property, update_wrapper
from operator import itemgetter
from typing import Any, ClassVar, Generic, ParamSpec, TypeVar

from django.db import DEFAULT_DB_ALIAS, connections
from django.db.models import QuerySet
from django.db.models.query import (
    FlatValuesListIterable,
    ModelIterable,
    ValuesListIterable,
    get_related_populators,
)

from agentcms.db.statements.parameters import WINDOW_SQL, Parameter, Reader, WindowParameter, parameters_of

P = ParamSpec("P")
R = TypeVar("R")

Row = tuple[Any, ...]
Converters = list[tuple[int, list[Any], Any]]  # the position of a column, its converters, and its expression


class CompiledQuery(Generic[P, R]):
    """A function that returns a queryset, called like a function that returns its rows."""

    declared: ClassVar[list[CompiledQuery[..., Any]]] = []  # the tests compare each with Django

    def __init__(self, build: Callable[P, QuerySet[Any, R]]) -> None:
        self.build = build
        self._statements: dict[Hashable, _Statement[R]] = {}
        self.declared.append(self)
        update_wrapper(self, build)

    def __call__(self, *options: P.args, **values: P.kwargs) -> list[R]:
        """Execute the query and return its rows."""
        query = self.bind(*options, **values)
        return query.read(_connection().run_statement(query.sql, query.parameters))

    def first(self, *options: P.args, **values: P.kwargs) -> R | None:
        """Execute the query and return its first row, or None. Unlike Django's `first()` it adds no LIMIT."""
        rows = self(*options, **values)
        return rows[0] if rows else None

    def bind(self, *options: P.args, **values: P.kwargs) -> BoundQuery[R]:
        """Return the query with these values, for `run_together`."""
        variants = {name: parameter.variant(values[name]) for name, parameter in self._variable}
        key = (options, *variants.values())
        statement = self._statements.get(key)
        if statement is None:
            # Without a lock: threads that miss at the same time compile equal statements, and the last one stays.
            statement = self._statements[key] = self._compile(options, variants)
        return BoundQuery(statement, statement.fill_in(values))

    @cached_property
    def _parameters(self) -> dict[str, Parameter[Any]]:
        return parameters_of(self.build)

    @cached_property
    def _variable(self) -> list[tuple[str, Parameter[Any]]]:
        """The parameters whose values may change the SQL."""
        return [(name, item) for name, item in self._parameters.items() if type(item).variant is not Parameter.variant]

    def _compile(self, options: tuple[Any, ...], variants: dict[str, Hashable]) -> _Statement[R]:
        placeholders: dict[str, Any] = {}
        slots: dict[Hashable, _Slot] = {}
        for number, (name, parameter) in enumerate(self._parameters.items()):
            placeholder = placeholders[name] = parameter.placeholder(number, variants.get(name))
            slots |= {compiled: _Slot(name, reader) for compiled, reader in parameter.readers(placeholder).items()}
        queryset = self.build(*options, **placeholders)
        compiler = queryset.query.get_compiler(DEFAULT_DB_ALIAS)
        sql, compiled = compiler.as_sql()
        template = [slots.get(item, item) if isinstance(item, Hashable) else item for item in compiled]
        for name, parameter in self._parameters.items():
            if isinstance(parameter, WindowParameter):
                sql = _insert_window(sql, template, name)
        self._check_use(template, variants)
        # Only now: `as_sql` has set `select`, `klass_info` and `annotation_col_map` of the compiler.
        read_row = _row_reader(queryset, compiler)
        expressions = [expression for expression, _, _ in compiler.select]
        converters = [(index, *functions) for index, functions in compiler.get_converters(expressions).items()]
        return _Statement(sql, template, converters, read_row)

    def _check_use(self, template: list[Any], variants: dict[str, Hashable]) -> None:
        """Raise TypeError for a value that is not in the SQL: its placeholder was changed or ignored."""
        used = {item.name for item in template if isinstance(item, _Slot)}
        if unused := self._parameters.keys() - used - variants.keys():
            raise TypeError(f"{self.build.__qualname__} does not use {', '.join(sorted(unused))} as a parameter.")


compiled_query = CompiledQuery


@dataclass(frozen=True, slots=True)
class BoundQuery(Generic[R]):
    """A compiled query with its values."""

    statement: _Statement[R]
    parameters: list[Any]

    @property
    def sql(self) -> str:
        return self.statement.sql

    def read(self, rows: list[Row]) -> list[R]:
        """Return what the queryset returns for these rows of the database."""
        return self.statement.read(rows)


def run_together(*queries: BoundQuery[Any]) -> list[list[Any]]:
    """Send queries together inside a transaction. Return the rows of each.

    Each query sees what was committed when its turn came. After a wait for a lock, the next query sees the changes
    of the transaction that held the lock.
    """
    results = _connection().run_statements([(query.sql, query.parameters) for query in queries])
    return [query.read(rows) for query, rows in zip(queries, results, strict=True)]


@dataclass(frozen=True, slots=True)
class _Slot:
    """The position of a value among the parameters of a statement."""

    name: str
    read: Reader[Any]


@dataclass(frozen=True, slots=True)
class _Statement(Generic[R]):
    """One compiled variant of a query."""

    sql: str
    template: list[Any]  # the parameters, with a slot for each value
    converters: Converters
    read_row: Callable[[Row], R] | None

    def fill_in(self, values: dict[str, Any]) -> list[Any]:
        return [item.read(values[item.name]) if type(item) is _Slot else item for item in self.template]

    def read(self, rows: list[Row]) -> list[R]:
        results: list[Any] = [self._convert(row) for row in rows] if self.converters else rows
        return [self.read_row(row) for row in results] if self.read_row else results

    def _convert(self, row: Row) -> Row:
        database, values = _connection(), list(row)
        for index, converters, expression in self.converters:
            for convert in converters:
                values[index] = convert(values[index], expression, database)
        return tuple(values)


def _connection() -> Any:
    return connections[DEFAULT_DB_ALIAS]


def _insert_window(sql: str, template: list[Any], name: str) -> str:
    """Turn the numbers of the placeholder slice into parameters."""
    before, separator, after = sql.partition(WINDOW_SQL)
    if not separator:
        return sql
    # LIMIT and OFFSET may be followed by others, as in a subquery: the place of their parameters is that in the SQL.
    position = before.count("%s")
    limit = _Slot(name, lambda window: window.stop - window.start)
    template[position:position] = [limit, _Slot(name, lambda window: window.start)]
    return f"{before}LIMIT %s OFFSET %s{after}"


def _row_reader(queryset: Any, compiler: Any) -> Callable[[Row], Any] | None:
    """Return the function that turns a row into what the queryset returns, or None where that is the row itself.

    Raise TypeError for querysets that Django reads with more than one query or in another way.
    """
    iterable = queryset._iterable_class
    if queryset._prefetch_related_lookups or compiler.has_extra_select:
        raise TypeError("A compiled query cannot prefetch, or select more columns than it returns.")
    if iterable is ModelIterable:
        return _object_reader(queryset, compiler)
    if iterable is FlatValuesListIterable:
        return itemgetter(0)
    if iterable is not ValuesListIterable:
        raise TypeError("A compiled query returns objects or a values_list().")
    return None


def _object_reader(queryset: Any, compiler: Any) -> Callable[[Row], Any]:
    """Return the function that creates an object from a row, as Django's ModelIterable does."""
    info, annotations = compiler.klass_info, list((compiler.annotation_col_map or {}).items())
    model, start, stop = info["model"], info["select_fields"][0], info["select_fields"][-1] + 1
    names = [expression.target.attname for expression, _, _ in compiler.select[start:stop]]
    fetch_mode = [queryset._fetch_mode] if hasattr(queryset, "_fetch_mode") else []  # since Django 6.1
    get_populators: Callable[..., list[Any]] = get_related_populators
    related = get_populators(info, compiler.select, DEFAULT_DB_ALIAS, *fetch_mode)

    def read(row: Row) -> Any:
        instance = model.from_db(DEFAULT_DB_ALIAS, names, row[start:stop])
        for populator in related:
            populator.populate(row, instance)
        for name, position in annotations:
            setattr(instance, name, row[position])
        return instance

    return read
