"""Transactions that PostgreSQL ends: they took too long, or the server accepts no writes for now."""

import time

import pytest
from django.db import OperationalError, connection

from agentcms.api.exceptions import api_error
from tests.agentcms.db.separate_connection import separate_connection

LOCK_FIRST_USER = "SELECT 1 FROM auth_user ORDER BY id LIMIT 1 FOR UPDATE"

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.postgres_only]


@pytest.fixture
def hanging_connection():
    """Return a connection whose transactions may wait for one second."""
    with separate_connection(lock_timeout=1, idle_timeout=1) as hanging:
        yield hanging


def assert_unavailable(error):
    """Check that callers may repeat their request after this error."""
    error = api_error(error)
    assert (error.status, error.headers["Retry-After"]) == (503, "1")


def test_a_transaction_that_waits_for_its_process_too_long_loses_its_locks(hanging_connection, django_user_model):
    django_user_model.objects.create(username="ada")
    hanging_connection.set_autocommit(False)
    with hanging_connection.cursor() as cursor:
        cursor.execute(LOCK_FIRST_USER)

        with connection.cursor() as other:  # waits until PostgreSQL ends the transaction
            other.execute(LOCK_FIRST_USER)
        with pytest.raises(OperationalError) as raised:
            cursor.execute("SELECT 1")

    assert_unavailable(raised.value)


def test_a_transaction_that_takes_longer_than_the_server_allows_may_be_repeated(hanging_connection):
    """Servers from version 17 on may have a `transaction_timeout`."""
    hanging_connection.set_autocommit(False)
    with hanging_connection.cursor() as cursor:
        cursor.execute("SET LOCAL transaction_timeout = '300ms'")
        time.sleep(0.6)
        with pytest.raises(OperationalError) as raised:
            cursor.execute("SELECT 1")

    assert_unavailable(raised.value)


def test_a_server_that_accepts_no_writes_is_unavailable(hanging_connection):
    """A server is like this after another one has become the primary server."""
    with hanging_connection.cursor() as cursor:
        cursor.execute("SET default_transaction_read_only = on")
        with pytest.raises(OperationalError) as raised:
            cursor.execute("DELETE FROM runs_app_agentrun")

    assert_unavailable(raised.value)
