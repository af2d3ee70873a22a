"""Django's PostgreSQL backend with faster timestamps and statements that are sent together."""

from __future__ import annotations

import select
from contextlib import suppress
from datetime import tzinfo
from functools import cache
from types import TracebackType
from typing import Any

import psycopg
from django.db.backends.postgresql import base
from django.db.backends.postgresql.psycopg_any import get_adapters_template
from django.db.utils import DatabaseErrorWrapper, OperationalError
from django.utils.functional import cached_property
from psycopg.adapt import AdaptersMap
from psycopg.pq import Format, TransactionStatus

from agentcms.db.backends.postgresql.prepared_statements import PreparedStatements, ResultRow, Statement

# The server has ended a transaction that waited (25P03) or took (25P04) too long, or accepts no writes until it is the
# primary server again (25006). psycopg has them as internal errors, which are bugs otherwise.
PASSING_STATES = frozenset({"25P03", "25P04", "25006"})
TIMESTAMP_OID = psycopg.adapters.types["timestamptz"].oid


@cache
def adapters(timezone: tzinfo) -> AdaptersMap:
    """Return Django's adapters with psycopg's own loader of timestamps."""
    adapters = AdaptersMap(get_adapters_template(True, timezone))
    if loader := psycopg.adapters.get_loader(TIMESTAMP_OID, Format.TEXT):
        adapters.register_loader("timestamptz", loader)
    return adapters


def is_closed_by_server(connection: psycopg.Connection[Any]) -> bool:
    """Return whether an idle connection has ended, as after a restart of the server. This sends nothing."""
    poll = select.poll()
    poll.register(connection.fileno(), select.POLLIN)
    try:
        while poll.poll(0):
            connection.pgconn.consume_input()  # the last message of the server, and then the end
    except psycopg.OperationalError:
        return True
    return False


class ErrorWrapper(DatabaseErrorWrapper):
    """Django's conversion of errors, for which another attempt may succeed after these errors as after an outage."""

    wrapper: Any  # the connection

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc_value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if isinstance(exc_value, psycopg.Error) and exc_value.sqlstate in PASSING_STATES:
            # As Django sets it: at the end of the request it closes the connection unless that still works.
            self.wrapper.errors_occurred = True
            raise OperationalError(*exc_value.args).with_traceback(traceback) from exc_value
        super().__exit__(exc_type, exc_value, traceback)


class ServerSideCursor(psycopg.ServerCursor[Any]):
    """A cursor of the server, which ends with a lost connection.

    Django closes it outside of its conversion of errors. The error of psycopg would hide that of the lost connection,
    which leads to another attempt.
    """

    def close(self) -> None:
        with suppress(psycopg.OperationalError):
            super().close()


class DatabaseWrapper(base.DatabaseWrapper):
    """A connection in UTC, as all connections of this project are, so that no timestamp needs another time zone.

    Django's loader converts each timestamp in Python, which took a third of the time of a list.
    """

    @cached_property
    def wrap_database_errors(self) -> DatabaseErrorWrapper:
        return ErrorWrapper(self)

    def get_connection_params(self) -> dict[str, Any]:
        # Django asks at every request. An existing pool already has its parameters.
        if self.alias in self._connection_pools:  # type: ignore[attr-defined]
            return {}
        return {**super().get_connection_params(), "context": adapters(self.timezone)}

    def get_new_connection(self, conn_params: dict[str, Any]) -> psycopg.Connection[Any]:
        """Return a connection. Discard those of the pool that the server has closed meanwhile."""
        connection: psycopg.Connection[Any] = super().get_new_connection(conn_params)
        while self.pool and is_closed_by_server(connection):
            self.pool.putconn(connection)
            connection = super().get_new_connection(conn_params)
        return connection

    def _close(self) -> None:
        """Close a connection, or return it to the pool.

        After the first lost one, the pool replaces all others: they led to the same server. Otherwise each of them
        would fail one request.
        """
        connection, pool = self.connection, self.pool
        is_lost = connection is not None and connection.closed
        super()._close()  # type: ignore[misc]
        # An older connection than the last replacement would replace the new ones, which work.
        if is_lost and pool and connection._created_at > pool._drained_at:
            pool.drain()

    def _set_autocommit(self, autocommit: bool) -> None:
        if self.connection.autocommit != autocommit:  # connections of the pool usually have the right state
            super()._set_autocommit(autocommit)  # type: ignore[misc]

    def _commit(self) -> None:
        if self.connection is None or self.queries_logged:
            super()._commit()  # type: ignore[misc]
            return
        with self.wrap_database_errors:
            # Without a statement there was no BEGIN, and PostgreSQL would warn about the COMMIT.
            if not self._is_idle():
                self._prepared_statements().execute("COMMIT", [])

    def create_cursor(self, name: str | None = None) -> object:
        if name:  # outside a transaction such a cursor must outlive the statement
            return ServerSideCursor(self.connection, name, scrollable=False, withhold=self.connection.autocommit)
        return self.connection.cursor()

    def run_statement(self, sql: str, parameters: list[Any]) -> list[ResultRow]:
        """Execute a statement and return its rows."""
        if self.queries_logged or self.execute_wrappers:  # tests and tools observe Django's cursors
            with self.cursor() as cursor:
                cursor.execute(sql, parameters)
                rows: list[ResultRow] = cursor.fetchall()
            return rows
        self._ensure_usable()
        with self.wrap_database_errors:
            if self._must_begin():
                return self._prepared_statements().execute_together([(sql, parameters)], with_begin=True)[0]
            return self._prepared_statements().execute(sql, parameters)

    def run_statements(self, statements: list[Statement]) -> list[list[ResultRow]]:
        """Send statements together inside a transaction. Return the rows of each.

        Waiting once saves two thirds of the CPU that small statements take on the server.
        """
        if self.queries_logged or self.execute_wrappers or len(statements) < 2:
            return [self.run_statement(sql, parameters) for sql, parameters in statements]
        self._ensure_usable()
        with self.wrap_database_errors:
            return self._prepared_statements().execute_together(statements, self._must_begin())

    def _ensure_usable(self) -> None:
        if self.connection is None:
            self.ensure_connection()
        # As a cursor of Django does it: after an error, an atomic block must end before the next statement.
        self.validate_no_broken_transaction()

    def _must_begin(self) -> bool:
        """Return True if the next statement is the first of a transaction. A cursor of psycopg would send a BEGIN."""
        return not self.connection.autocommit and self._is_idle()

    def _is_idle(self) -> bool:
        """Return True outside of a transaction."""
        status: TransactionStatus = self.connection.pgconn.transaction_status
        return status == TransactionStatus.IDLE

    def _prepared_statements(self) -> PreparedStatements:
        """Return the statements of the connection, which keeps them when it is back in the pool."""
        statements: PreparedStatements | None = vars(self.connection).get("prepared_statements")
        if statements is None:
            statements = vars(self.connection)["prepared_statements"] = PreparedStatements(self.connection)
        return statements
