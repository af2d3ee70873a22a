"""Rows that are read in parts from a cursor of PostgreSQL, whose connection is lost meanwhile."""

import pytest
from django.contrib.auth.models import User
from django.db import OperationalError, connection

from tests.agentcms.db.separate_connection import separate_connection
from tests.factories import UserFactory

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.postgres_only]


@pytest.fixture
def lose_connection():
    """Return a function that ends the server's process of this connection."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        (process_id,) = cursor.fetchone()

    def end_process():
        with separate_connection() as other, other.cursor() as cursor:
            cursor.execute("SELECT pg_terminate_backend(%s)", [process_id])

    yield end_process
    connection.close()


def test_reading_further_rows_raises_an_error_of_django(lose_connection):
    UserFactory.create_batch(20)
    names = User.objects.order_by("pk").values_list("username", flat=True).iterator(chunk_size=5)
    next(names)
    lose_connection()

    with pytest.raises(OperationalError):
        list(names)


def test_a_cursor_is_closed_without_an_error(lose_connection):
    cursor = connection.chunked_cursor()
    cursor.execute("SELECT 1")
    assert cursor.fetchall() == [(1,)]
    lose_connection()

    cursor.close()
