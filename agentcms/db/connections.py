"""The database connection of a thread that waits for something else."""

from __future__ import annotations

from django.db import close_old_connections, connection


def return_connection() -> None:
    """Return the connection of this thread to the pool, because the thread waits, such as for a model or a reader.

    In a transaction, do nothing: Django would close the connection, and undo the transaction.
    """
    if not connection.in_atomic_block:
        close_old_connections()
