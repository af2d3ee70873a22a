"""A database with pgvector, for tests."""

from contextlib import contextmanager
from io import StringIO

from django.core.management import CommandError, call_command
from django.db import connection

from agentcms.vectors import pgvector


def has_extension():
    """Return whether the server of the tests has pgvector. That of the wheel has it."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1 FROM pg_available_extensions WHERE name = 'vector'")
        return cursor.fetchone() is not None


@contextmanager
def enabled_pgvector():
    """Enable pgvector in the transaction of a test, which removes it again. Yield False if the server has none."""
    with connection.cursor() as cursor:
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")  # checks that wait would prevent a change of the tables
    try:
        call_command("use_pgvector", stdout=StringIO())
    except CommandError:
        if has_extension():
            raise
    try:
        yield pgvector.uses_pgvector()
    finally:
        pgvector.forget_cached_state()
