"""SQLite as Django has it, with a queue for its writers."""

from __future__ import annotations

import fcntl
import os
from threading import Thread
from typing import Any

from django.db import OperationalError
from django.db.backends.sqlite3 import base

Base: Any = base.DatabaseWrapper  # its stubs leave out what is overridden here


class Turn:
    """The right to write, which is given in the order of asking; the kernel takes it back from whoever dies."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.file = self._open()

    def _open(self) -> int:
        return os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)

    def take(self, seconds: float) -> None:
        """Wait in line; OperationalError where it takes too long."""
        try:
            fcntl.flock(self.file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            # The kernel keeps the line, but knows no patience: a thread waits there, and we wait for the thread.
            waiting = Thread(target=fcntl.flock, args=[self.file, fcntl.LOCK_EX], daemon=True)
            waiting.start()
            waiting.join(seconds)
            if waiting.is_alive():
                self.close()  # what the thread gets one day ends with the file
                self.file = self._open()
                raise OperationalError("database is locked: the writers before this one took too long") from None

    def give_back(self) -> None:
        fcntl.flock(self.file, fcntl.LOCK_UN)

    def close(self) -> None:
        os.close(self.file)


class DatabaseWrapper(Base):
    """Writers wait in line before BEGIN IMMEDIATE.

    SQLite itself lets them look again after ever longer pauses, so that some starve: with eight writers one edit in
    twenty took half a second, and takes a tenth of that in line.
    """

    turn: Turn | None = None

    def _start_transaction_under_autocommit(self) -> None:
        if self.turn is None and not self.is_in_memory_db():
            self.turn = Turn(f"{self.settings_dict['NAME']}-queue")
        if self.turn is not None:
            self.turn.take(self.settings_dict["OPTIONS"]["timeout"])
        try:
            super()._start_transaction_under_autocommit()
        except BaseException:
            self._give_back()
            raise

    def _commit(self) -> Any:
        try:
            return super()._commit()
        finally:
            self._give_back()

    def _rollback(self) -> Any:
        try:
            return super()._rollback()
        finally:
            self._give_back()

    def _close(self) -> Any:
        try:
            return super()._close()
        finally:
            if self.turn is not None:
                self.turn.close()
                self.turn = None

    def _give_back(self) -> None:
        if self.turn is not None:
            self.turn.give_back()

    def run_statement(self, sql: str, parameters: list[Any]) -> list[tuple[Any, ...]]:
        """What a statement answers that is asked again and again; SQLite remembers statements by itself."""
        with self.cursor() as cursor:
            cursor.execute(sql, parameters)
            found: list[tuple[Any, ...]] = cursor.fetchall()
        return found

    def run_statements(self, statements: list[tuple[str, list[Any]]]) -> list[list[tuple[Any, ...]]]:
        """What each of some statements answers; there is nobody to wait for."""
        return [self.run_statement(sql, parameters) for sql, parameters in statements]
