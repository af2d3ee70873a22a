"""Empty the database after a test that commits.

Django flushes it and sends `post_migrate`, which creates all permissions anew. With about seventy tables that takes 50
ms on SQLite and 240 ms on PostgreSQL, more than most of these tests. Deleting the rows takes 3 ms.
"""

from django.db import connections, transaction
from django.test import TransactionTestCase

# Migrations fill them, and they are the same in every test.
CONSTANT_TABLES = {"django_content_type", "auth_permission"}


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
    with transaction.atomic(using=alias), connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            # Wait for the transactions of threads: the rows that they insert would stay.
            lock = f"LOCK TABLE {', '.join(tables)} IN SHARE ROW EXCLUSIVE MODE"
            cursor.execute("; ".join([lock, *statements]))
        else:
            for statement in statements:
                cursor.execute(statement)
