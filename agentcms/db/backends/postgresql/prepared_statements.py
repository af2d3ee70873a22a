"""Small statements on a connection of psycopg, executed with the functions of libpq.

A cursor of psycopg waits for its result in a generator, so that Ctrl-C can interrupt a long statement. For a statement
that reads a row by its key, that takes more CPU than all the rest. Here libpq itself waits for a single statement, and
a signal is handled after it. A signal during statements that are sent together closes the connection.
https://www.postgresql.org/docs/current/libpq-exec.html
https://www.postgresql.org/docs/current/libpq-pipeline-mode.html
"""

from __future__ import annotations

import re
import select
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg._preparing import Prepare, PrepareManager
from psycopg.adapt import PyFormat, Transformer
from psycopg.errors import error_from_result
from psycopg.pq import DiagnosticField, ExecStatus, Format
from psycopg.pq.abc import PGconn, PGresult

SUCCESS = (ExecStatus.TUPLES_OK, ExecStatus.COMMAND_OK)
PLACEHOLDER = re.compile("%([%s])")

ResultRow = tuple[Any, ...]
Statement = tuple[str, list[Any]]  # SQL with the placeholder `%s`, and its parameters


@dataclass(slots=True)
class EncodedStatement:
    """A statement as libpq takes it. psycopg's manager of prepared statements reads `query` and `types`."""

    query: bytes
    types: tuple[int, ...]
    values: Any  # bytes, or None for NULL, which the types of psycopg do not know here
    formats: Sequence[Format]
    transformer: Any
    preparation: Prepare = Prepare.NO
    name: bytes = b""
    new_key: Any = None  # under which the manager counts a statement that it did not know


class PreparedStatements:
    """The statements that one connection executes.

    psycopg counts them together with those of its cursors, prepares those that are frequent, and ends them.

    Args:
        connection: The connection, outside of a pipeline of psycopg.
    """

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        self.connection = connection
        self.libpq: PGconn = connection.pgconn
        # psycopg ends all prepared statements after a rollback, so names of our own would become wrong.
        self.manager: PrepareManager = connection._prepared
        self.queries: dict[str, tuple[bytes, Any]] = {}

    def execute(self, sql: str, parameters: list[Any]) -> list[ResultRow]:
        """Execute a statement and return its rows. Raise psycopg.Error."""
        statement = self._encode(sql, parameters)
        if statement.name:
            result = self.libpq.exec_prepared(statement.name, statement.values, statement.formats)
        else:
            result = self.libpq.exec_params(statement.query, statement.values, statement.types, statement.formats)
        [rows] = self._read([statement], [result])
        return rows

    def execute_together(self, statements: Sequence[Statement], with_begin: bool = False) -> list[list[ResultRow]]:
        """Send statements in one message, after a BEGIN if asked for. Return the rows of each.

        Raise psycopg.Error for the first that fails. The server does not execute those after it.
        """
        begin: list[Statement] = [("BEGIN", [])] if with_begin else []
        encoded = [self._encode(sql, parameters) for sql, parameters in [*begin, *statements]]
        try:
            self.libpq.enter_pipeline_mode()
            for statement in encoded:
                self._send(statement)
            self.libpq.pipeline_sync()
            results = [self._receive() for _ in encoded]
            self._receive(is_last=True)
            self.libpq.exit_pipeline_mode()
        except BaseException:
            self.connection.close()  # with results that nobody reads it could not be used again
            raise
        return self._read(encoded, results)[len(begin) :]

    def _encode(self, sql: str, parameters: list[Any]) -> EncodedStatement:
        """Return a statement for libpq. Prepare it on the server if it was executed often enough."""
        query, transformer = self.queries.get(sql) or self._add(sql)
        values = transformer.dump_sequence(parameters, [PyFormat.AUTO] * len(parameters))
        types, formats = transformer.types or (), transformer.formats or ()
        statement: Any = EncodedStatement(query, types, values, formats, transformer)
        statement.preparation, statement.name = self.manager.get(statement)
        if statement.preparation is Prepare.SHOULD:
            result = self.libpq.prepare(statement.name, query, types)
            if result.status not in SUCCESS:
                raise self._error(result)
        # At once: if the next statement is the same, or fails, nothing would end a second one of another name.
        statement.new_key = self.manager.maybe_add_to_cache(statement, statement.preparation, statement.name)
        return statement  # type: ignore[no-any-return]

    def _add(self, sql: str) -> tuple[bytes, Any]:
        """Return new SQL as libpq takes it, with a transformer, which remembers how to read and write its values."""
        query: tuple[bytes, Any] = numbered_placeholders(sql).encode(), Transformer(self.connection)
        self.queries[sql] = query
        return query

    def _send(self, statement: EncodedStatement) -> None:
        if statement.name:
            self.libpq.send_query_prepared(statement.name, statement.values, statement.formats)
        else:
            self.libpq.send_query_params(statement.query, statement.values, statement.types, statement.formats)

    def _receive(self, is_last: bool = False) -> PGresult:
        """Wait for the next result of the pipeline. A None follows each but the last, which only ends the pipeline."""
        result = self._next_result()
        if not is_last:
            self._next_result()
        if result is None:
            raise psycopg.OperationalError(self.libpq.get_error_message())
        return result

    def _next_result(self) -> PGresult | None:
        """Return a result, or the None after it. Other threads run while this one waits."""
        while self.libpq.flush():
            self._wait(select.POLLIN | select.POLLOUT)
            self.libpq.consume_input()  # the server may wait until its results are read
        while self.libpq.is_busy():
            self._wait(select.POLLIN)
            self.libpq.consume_input()
        return self.libpq.get_result()

    def _wait(self, events: int) -> None:
        poll = select.poll()
        poll.register(self.libpq.socket, events)
        poll.poll()

    def _read(self, statements: Sequence[EncodedStatement], results: Sequence[PGresult]) -> list[list[ResultRow]]:
        """Return the rows of each result. Let psycopg forget new statements that failed."""
        for statement, result in zip(statements, results, strict=True):
            if statement.new_key is not None:
                self.manager.validate(statement.new_key, statement.preparation, statement.name, [result])
        rows = []
        for statement, result in zip(statements, results, strict=True):
            if result.status not in SUCCESS:
                error = self._error(result)
                if isinstance(error, psycopg.errors.FeatureNotSupported):
                    self.manager.clear()  # "cached plan must not change result type": a migration changed a column
                raise error
            statement.transformer.set_pgresult(result)
            rows.append(statement.transformer.load_rows(0, result.ntuples, tuple))
            statement.transformer.set_pgresult(None)  # or a large result would stay in memory
        if self.manager._to_flush:
            self.connection.wait(self.manager.maintain_gen(self.connection))
        return rows

    def _error(self, result: PGresult) -> psycopg.Error:
        if result.error_field(DiagnosticField.SQLSTATE) is None:  # libpq itself failed: the connection is lost
            return psycopg.OperationalError(result.get_error_message("utf-8"))
        return error_from_result(result)


def numbered_placeholders(sql: str) -> str:
    """Return SQL with the placeholders of PostgreSQL, `$1` and so on, in place of each `%s`."""
    numbers = iter(range(1, sql.count("%s") + 1))
    return PLACEHOLDER.sub(lambda match: f"${next(numbers)}" if match[1] == "s" else "%", sql)
