"""Empty the database after a test that commits.

Django flushes it and sends `post_migrate`, which creates all permissions anew. With about seventy tables that takes 50
ms on SQLite and 240 ms on PostgreSQL, more than most of these tests. Deleting the rows takes 3 ms.
"""

import time

from django.db import OperationalError, connections, transaction
from django.test import TransactionTestCase

# Migrations fill them, and they are the same in every test.
CONSTANT_TABLES = {"django_content_type", "auth_permission"}
LOCK_TIMEOUT = 30.0  # seconds for the transactions of threads
POLL_INTERVAL = 0.02


def delete_rows_after_tests() -> None:
    """Make tests with transactions delete their rows instead of flushing the database."""
    TransactionTestCase._fixture_teardown = delete_rows_of_test


def delete_rows_of_test(test_case: TransactionTestCase) -> None:
    for alias in test_case._databases_names(include_mirrors=False):
        delete_rows(alias)


def delete_rows(alias: str = "default") -> None:
    """Delete the rows of all models. Foreign keys are checked at the end, so that the order does not matter."""
    connection = connections[alias]
    existing = connection.introspection.django_table_names(only_existing=True, include_views=False)
    tables = [f'"{table}"' for table in existing if table not in CONSTANT_TABLES]
    statements = [f"DELETE FROM {table}" for table in tables]
    if connection.vendor == "postgresql":
        # The rows that open transactions of threads insert would stay. Waiting for their locks could be a deadlock.
        lock = f"LOCK TABLE {', '.join(tables)} IN SHARE ROW EXCLUSIVE MODE NOWAIT"
        statements = ["; ".join([lock, *statements])]
    end = time.monotonic() + LOCK_TIMEOUT
    while not try_to_execute(alias, statements, is_last=time.monotonic() > end):
        time.sleep(POLL_INTERVAL)


def try_to_execute(alias: str, statements: list[str], *, is_last: bool) -> bool:
    """Execute statements in a transaction. Return False if another one has a lock. Raise if this try is the last."""
    try:
        with transaction.atomic(using=alias), connections[alias].cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)
    except OperationalError:
        if is_last:
            raise
        return False
    return True
