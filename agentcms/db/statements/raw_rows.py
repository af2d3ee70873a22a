"""Rows of large results as the database driver returns them, without the conversions of Django."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django.core.exceptions import EmptyResultSet
from django.db import connection
from django.db.models import QuerySet

RawRow = tuple[Any, ...]

BINARY = 1  # the format in which PostgreSQL sends bytes as they are, not as twice as many digits


def fetch_raw_rows(rows: QuerySet[Any, Any]) -> list[RawRow]:
    """Return the rows of a `values_list()`. Its columns must need no conversion: numbers, texts and bytes."""
    try:
        sql, parameters = rows.query.sql_with_params()
    except EmptyResultSet:
        return []
    with connection.cursor() as cursor:
        execute_binary(cursor, sql, parameters)
        fetched: list[tuple[Any, ...]] = cursor.fetchall()
    return fetched


def iterate_raw_rows(rows: QuerySet[Any, Any], batch_size: int) -> Iterator[list[RawRow]]:
    """Yield the rows of a `values_list()` in batches. One at a time is in memory, where the server allows it."""
    try:
        sql, parameters = rows.query.sql_with_params()
    except EmptyResultSet:
        return
    is_chunked = not connection.settings_dict.get("DISABLE_SERVER_SIDE_CURSORS")
    with connection.chunked_cursor() if is_chunked else connection.cursor() as cursor:
        execute_binary(cursor, sql, parameters)
        while batch := cursor.fetchmany(batch_size):
            yield batch


def execute_binary(cursor: Any, sql: str, parameters: Any) -> None:
    """Execute a statement, with results in the binary format of PostgreSQL."""
    if connection.vendor == "postgresql":
        cursor.cursor.format = BINARY
    cursor.execute(sql, parameters)
