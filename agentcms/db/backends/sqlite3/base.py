"""Django's SQLite backend with a fair queue of writers."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock, Thread
from typing import Any

from django.db import OperationalError
from django.db.backends.sqlite3 import base

Base: Any = base.DatabaseWrapper  # its stubs lack the methods that are overridden here

WRITES = ("INSERT", "UPDATE", "DELETE", "REPLACE")


class LockRequest(Thread):
    """A thread that waits for the lock of a file, because flock() has no timeout.

    The file belongs to the thread as soon as nobody waits for it any more. Otherwise, a thread that is slow to begin
    could lock the file that has the same descriptor later, and nobody would release it.
    """

    def __init__(self, file: int) -> None:
        super().__init__(daemon=True)
        self.file = file
        self.mutex = Lock()
        self.has_lock = False
        self.is_abandoned = False

    def run(self) -> None:
        fcntl.flock(self.file, fcntl.LOCK_EX)
        with self.mutex:
            self.has_lock = True
            if self.is_abandoned:
                os.close(self.file)

    def wait_for_lock(self, seconds: float) -> bool:
        """Return whether the lock is there after this time at most. If it is not, leave the file to the thread."""
        self.join(seconds)
        with self.mutex:
            self.is_abandoned = not self.has_lock
        return not self.is_abandoned


class WriterQueue:
    """A file lock that the writers of all processes get in the order of their requests.

    The kernel releases the lock of a process that dies.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self.file = self._open()

    def _open(self) -> int:
        # Each connection opens the file itself: a lock of flock() belongs to an open file, so threads wait for each
        # other.
        try:
            return os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            DatabaseWrapper.is_read_only = True
            raise OperationalError(f"The queue of writers cannot be opened: {error.strerror}") from error

    def acquire(self, seconds: float) -> None:
        """Wait for the lock. Raise OperationalError after this time."""
        try:
            fcntl.flock(self.file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            request = LockRequest(self.file)
            request.start()
            if not request.wait_for_lock(seconds):
                self.file = self._open()
                raise OperationalError("database is locked: the writers before this one took too long") from None

    def release(self) -> None:
        fcntl.flock(self.file, fcntl.LOCK_UN)

    def close(self) -> None:
        os.close(self.file)


class DatabaseWrapper(Base):
    """A connection whose writers queue before BEGIN IMMEDIATE, and before a write outside of a transaction.

    SQLite itself retries after growing pauses, so that some writers starve: with eight of them, one edit in twenty
    took half a second, and a single UPDATE waited for seconds during an import. In the queue they take a tenth of it.
    """

    queue: WriterQueue | None = None
    is_read_only = False  # in this process, since a write was refused: the folder is read-only, or was

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.lock_timeout: float = self.settings_dict["OPTIONS"]["timeout"]  # seconds
        # Not a bound method: in a reference cycle, the connection of a thread that ends would stay open.
        self.execute_wrappers.append(execute_in_queue)

    @contextmanager
    def waiting_at_most(self, seconds: float) -> Iterator[None]:
        """Let the writes of the block wait for so long at most, and then raise OperationalError."""
        usual = self.lock_timeout
        try:
            self._set_lock_timeout(seconds)
            yield
        finally:
            self._set_lock_timeout(usual)

    def _set_lock_timeout(self, seconds: float) -> None:
        self.lock_timeout = seconds
        with self.cursor() as cursor:
            cursor.execute(f"PRAGMA busy_timeout = {round(seconds * 1000)}")

    @contextmanager
    def queued(self) -> Iterator[None]:
        """Hold the queue for the writes of the block, which need no transaction."""
        self._enter_queue()
        try:
            yield
        finally:
            self._release_queue()

    def _start_transaction_under_autocommit(self) -> None:
        self._enter_queue()
        try:
            super()._start_transaction_under_autocommit()
        except BaseException:  # neither a commit nor a rollback follows, which would release the queue
            self._release_queue()
            raise
        DatabaseWrapper.is_read_only = False

    def _commit(self) -> object:
        try:
            return super()._commit()
        finally:
            self._release_queue()

    def _rollback(self) -> object:
        try:
            return super()._rollback()
        finally:
            self._release_queue()

    def close_if_unusable_or_obsolete(self) -> None:
        """Close the connection after a request, if it must not be used for the next one."""
        # SQLite lets new connections of a process share what it opened read-only, until all are closed.
        if DatabaseWrapper.is_read_only and not self.in_atomic_block:
            self.close()
        else:
            super().close_if_unusable_or_obsolete()

    def _close(self) -> object:
        try:
            return super()._close()
        finally:
            if self.queue is not None:
                self.queue.close()
                self.queue = None

    def _enter_queue(self) -> None:
        if self.queue is None and not self.is_in_memory_db():
            self.queue = WriterQueue(f"{self.settings_dict['NAME']}-queue")
        if self.queue is not None:
            self.queue.acquire(self.lock_timeout)

    def _release_queue(self) -> None:
        if self.queue is not None:
            self.queue.release()

    def run_statement(self, sql: str, parameters: list[Any]) -> list[tuple[Any, ...]]:
        """Execute a statement and return its rows."""
        with self.cursor() as cursor:
            cursor.execute(sql, parameters)
            rows: list[tuple[Any, ...]] = cursor.fetchall()
        return rows

    def run_statements(self, statements: list[tuple[str, list[Any]]]) -> list[list[tuple[Any, ...]]]:
        """Execute statements in order and return the rows of each. SQLite has no round trips to save."""
        return [self.run_statement(sql, parameters) for sql, parameters in statements]


def execute_in_queue(execute: Any, sql: str, params: Any, many: bool, context: dict[str, Any]) -> Any:
    """Execute a statement, in the queue of writers if it writes outside of a transaction.

    Django calls it for each statement, see `connection.execute_wrapper`.
    """
    connection: DatabaseWrapper = context["connection"]
    try:
        if not connection.autocommit or not sql[:7].upper().startswith(WRITES):
            return execute(sql, params, many, context)
        with connection.queued():
            return execute(sql, params, many, context)
    except OperationalError as error:
        if getattr(error.__cause__, "sqlite_errorname", "").startswith("SQLITE_READONLY"):
            DatabaseWrapper.is_read_only = True
        raise
