"""Writes that do not wait for a lock, and those that have waited too long."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.db import OperationalError, connection, transaction

SHORT_TIMEOUT = 10  # milliseconds; PostgreSQL waits forever with 0
LOCK_STATES = ("55P03", "40P01")  # lock_not_available and deadlock_detected of PostgreSQL
SQLITE_LOCKED = "database is locked"


@contextmanager
def no_lock_wait() -> Iterator[None]:
    """Raise OperationalError where a statement of the block would wait for a row or for the database file."""
    if connection.vendor == "sqlite":
        sqlite: Any = connection  # `agentcms.db.backends.sqlite3`
        with sqlite.waiting_at_most(SHORT_TIMEOUT / 1000):
            yield
    else:
        # SET LOCAL has no effect outside of a transaction.
        with transaction.atomic():
            _execute(f"SET LOCAL lock_timeout = '{SHORT_TIMEOUT}ms'")
            yield
            # For the rest of a surrounding transaction. After an error, the setting is rolled back.
            _execute("SET LOCAL lock_timeout TO DEFAULT")


def is_lock_timeout(error: OperationalError) -> bool:
    """Return whether a statement has waited too long for a lock, so that others may succeed."""
    return getattr(error.__cause__, "sqlstate", None) in LOCK_STATES or SQLITE_LOCKED in str(error)


def _execute(statement: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(statement)
