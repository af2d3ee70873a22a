"""PostgreSQL as Django has it, with times read by psycopg's own loader."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from datetime import tzinfo
from functools import cache
from typing import Any

import psycopg
from django.db.backends.postgresql import base
from django.db.backends.postgresql.psycopg_any import get_adapters_template
from psycopg.adapt import AdaptersMap
from psycopg.pq import Format, TransactionStatus

FEW = 20  # rows of an answer that may stay in memory until the next
TIME = psycopg.adapters.types["timestamptz"].oid


@cache
def adapters(timezone: tzinfo) -> AdaptersMap:
    """Django's, with psycopg's own loader of times."""
    known = AdaptersMap(get_adapters_template(True, timezone))
    if loader := psycopg.adapters.get_loader(TIME, Format.TEXT):
        known.register_loader("timestamptz", loader)
    return known


class DatabaseWrapper(base.DatabaseWrapper):
    """Connections that are in UTC, as all of ours are, so that no time has to be moved into another zone.

    Django's loader does that in Python: it took a third of the time of reading a list.
    """

    def get_connection_params(self) -> dict[str, Any]:
        if self.alias in self._connection_pools:  # type: ignore[attr-defined]  # asked at every request; it knows them
            return {}
        return {**super().get_connection_params(), "context": adapters(self.timezone)}

    def _set_autocommit(self, autocommit: bool) -> None:
        if self.connection.autocommit != autocommit:  # as it comes from the pool, it is as it should be
            super()._set_autocommit(autocommit)  # type: ignore[misc]

    def create_cursor(self, name: str | None = None) -> Any:
        if name:  # outside a transaction such a cursor must outlive the statement
            return self.connection.cursor(name, scrollable=False, withhold=self.connection.autocommit)
        return self.connection.cursor()

    def run_statement(self, sql: str, parameters: list[Any]) -> list[tuple[Any, ...]]:
        """What a statement answers that is asked again and again, by a cursor that the connection keeps for it.

        A new cursor learns anew what the parameters and columns are, which takes longer than the statement.
        """
        if self.queries_logged or self.execute_wrappers:  # whoever watches, watches Django's cursors
            with self.cursor() as watched:
                watched.execute(sql, parameters)
                return watched.fetchall()
        self.ensure_connection()
        self.validate_no_broken_transaction()
        with self.wrap_database_errors, self._with_its_beginning():
            return self._found(self._asked(sql, parameters), sql)

    def _asked(self, sql: str, parameters: list[Any]) -> Any:
        """The cursor of a statement that was sent: that of the time before, where it is free."""
        cursor = self._kept_cursors().pop(sql, None) or self.connection.cursor()
        return cursor.execute(sql, parameters)

    def _found(self, cursor: Any, sql: str) -> list[tuple[Any, ...]]:
        found: list[tuple[Any, ...]] = cursor.fetchall()
        if len(found) <= FEW:
            self._kept_cursors()[sql] = cursor
        return found

    def _kept_cursors(self) -> dict[str, Any]:
        kept: dict[str, Any] = vars(self.connection).setdefault("kept_cursors", {})
        return kept

    def _with_its_beginning(self) -> AbstractContextManager[Any]:
        """Lets the first statement of a transaction go together with the BEGIN that psycopg puts before it."""
        idle = self.connection.info.transaction_status == TransactionStatus.IDLE
        return self.connection.pipeline() if idle and not self.connection.autocommit else nullcontext()

    def run_statements(self, statements: list[tuple[str, list[Any]]]) -> list[list[tuple[Any, ...]]]:
        """What each of some statements answers that are sent at once, inside a transaction.

        One wait instead of many spares the server two thirds of what small statements cost it.
        """
        if self.queries_logged or self.execute_wrappers or len(statements) < 2:
            return [self.run_statement(sql, parameters) for sql, parameters in statements]
        self.ensure_connection()
        self.validate_no_broken_transaction()
        with self.wrap_database_errors, self.connection.pipeline():
            cursors = [self._asked(sql, parameters) for sql, parameters in statements]
            return [self._found(cursor, sql) for cursor, (sql, _) in zip(cursors, statements, strict=True)]
