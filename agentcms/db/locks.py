"""Locks on names, for counts and checks that no row can be locked for."""

from django.db import connection


def lock_name(name: str) -> None:
    """Wait until no other transaction holds the lock of this name, and hold it until this transaction ends.

    On SQLite there is nothing to do: its transactions wait for each other from their start.
    """
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", [name])
