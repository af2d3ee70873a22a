"""Filters as conditions of database queries. Keys and values are always parameters of a query."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import BooleanField, F, Func, Q
from django.db.models.sql.compiler import SQLCompiler

from agentcms.wire.metadata_filter import AllOf, AnyOf, Filter, KeyComparison, Not, Scalar
from agentcms.wire.validation import MAX_INTEGER, MIN_INTEGER

Query = tuple[str, list[Any]]

SQL_ORDERS = {"$eq": "=", "$gt": ">", "$gte": ">=", "$lt": "<", "$lte": "<="}
NO_CHUNKS = Q(pk__in=[])
ALL_CHUNKS = ~NO_CHUNKS  # a blank Q would vanish from a combination


def to_query(condition: Filter) -> Q:
    """Return the condition for rows with a column `metadata`."""
    match condition:
        case AllOf(parts):
            query = ALL_CHUNKS
            for part in parts:
                query &= to_query(part)
            return query
        case AnyOf(parts):
            query = NO_CHUNKS
            for part in parts:
                query |= to_query(part)
            return query
        case Not(part):
            # Comparisons are never unknown, so documents without the key match a negation.
            return ~to_query(part)
        case KeyComparison():
            return Q(MetadataComparison(condition))


class MetadataComparison(Func):
    """A comparison with a value in the column `metadata`. It is true or false, never unknown."""

    output_field = BooleanField()
    arity = 1

    def __init__(self, comparison: KeyComparison) -> None:
        super().__init__(F("metadata"))
        self.comparison = comparison

    def as_sqlite(self, compiler: SQLCompiler, connection: BaseDatabaseWrapper, **context: Any) -> Any:
        column, parameters = compiler.compile(self.source_expressions[0])
        return SQLiteComparison(column, parameters, self.comparison).query()

    def as_postgresql(self, compiler: SQLCompiler, connection: BaseDatabaseWrapper, **context: Any) -> Query:
        column, parameters = compiler.compile(self.source_expressions[0])
        return PostgresComparison(column, parameters, self.comparison).query()


class SQLiteComparison:
    """A comparison with the functions of SQLite."""

    def __init__(self, column: str, parameters: Iterable[Any], comparison: KeyComparison) -> None:
        self.value = sqlite_number(comparison.value)
        self.operator = comparison.operator
        # `key_error` allows no quotation mark in a key.
        place = [*parameters, f'$."{comparison.key}"']
        self.kind: Query = f"JSON_TYPE({column}, %s)", place
        self.stored: Query = f"JSON_EXTRACT({column}, %s)", place
        self.items: Query = f"JSON_EACH({column}, %s)", place

    def query(self) -> Query:
        if self.operator == "$contains":
            return self.contains()
        # By its type: JSON_EXTRACT returns 1 for true, which would equal the number.
        if self.value is None or isinstance(self.value, bool):
            return f"(COALESCE({self.kind[0]}, 'null') = %s)", [*self.kind[1], json.dumps(self.value)]
        sql = f"{self.kind[0]} IN ({sqlite_types(self.value)}) AND {self.stored[0]} {SQL_ORDERS[self.operator]} %s"
        return f"COALESCE({sql}, 0)", [*self.kind[1], *self.stored[1], self.value]

    def contains(self) -> Query:
        sql, parameters = self.item_matches()
        exists = f"{self.kind[0]} = 'array' AND EXISTS(SELECT 1 FROM {self.items[0]} AS item WHERE {sql})"  # noqa: S608
        values = [*self.kind[1], *self.items[1], *parameters]
        if isinstance(self.value, str):
            exists += f" OR {self.kind[0]} = 'text' AND INSTR({self.stored[0]}, %s) > 0"
            values += [*self.kind[1], *self.stored[1], self.value]
        return f"COALESCE({exists}, 0)", values

    def item_matches(self) -> Query:
        if isinstance(self.value, bool):
            return "item.type = %s", [json.dumps(self.value)]
        return f"item.type IN ({sqlite_types(self.value)}) AND item.atom = %s", [self.value]


def sqlite_number(value: Scalar) -> Scalar:
    """Return a whole number beyond 64 bits, of which a filter has only those that are doubles, as a double."""
    is_large = isinstance(value, int) and not MIN_INTEGER <= value <= MAX_INTEGER
    return float(value) if is_large and value is not None else value


def sqlite_types(value: Scalar) -> str:
    return "'text'" if isinstance(value, str) else "'integer', 'real'"


class PostgresComparison:
    """A comparison with the operators of PostgreSQL. Texts are compared by code point, as everywhere else."""

    def __init__(self, column: str, parameters: Iterable[Any], comparison: KeyComparison) -> None:
        self.value = comparison.value
        self.operator = comparison.operator
        self.parameters = [*parameters, comparison.key]
        self.stored = f"({column} -> %s)"
        self.text = f"({column} ->> %s)"

    def query(self) -> Query:
        if self.operator == "$contains":
            return self.contains()
        if self.value is None:
            return f"(COALESCE(JSONB_TYPEOF({self.stored}), 'null') = 'null')", self.parameters
        kind = "string" if isinstance(self.value, str) else "number"
        if self.operator == "$eq":
            return f"COALESCE({self.stored} = %s::jsonb, FALSE)", [*self.parameters, self.json_value]
        order = SQL_ORDERS[self.operator]
        if kind == "string":
            sql, value = f'{self.text} COLLATE "C" {order} %s', self.value
        else:
            sql, value = f"{self.stored} {order} %s::jsonb", self.json_value
        typed = f"JSONB_TYPEOF({self.stored}) = '{kind}' AND {sql}"
        return f"COALESCE({typed}, FALSE)", [*self.parameters, *self.parameters, value]

    @property
    def json_value(self) -> str:
        return json.dumps(self.value)

    def contains(self) -> Query:
        sql = f"JSONB_TYPEOF({self.stored}) = 'array' AND {self.stored} @> %s::jsonb"
        values = [*self.parameters, *self.parameters, self.json_value]
        if isinstance(self.value, str):
            sql += f" OR JSONB_TYPEOF({self.stored}) = 'string' AND POSITION(%s IN {self.text}) > 0"
            values += [*self.parameters, self.value, *self.parameters]
        return f"COALESCE({sql}, FALSE)", values
