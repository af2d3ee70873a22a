"""The pool of connections to PostgreSQL, after the server has ended some of them."""

from contextlib import closing

import pytest
from django.db import OperationalError, connection

from tests.agentcms.db.separate_connection import separate_connection

pytestmark = [pytest.mark.django_db, pytest.mark.postgres_only]


@pytest.fixture
def pooled():
    """Return a connection that shares its pool with those of `beside`."""
    with separate_connection(pool_size=3) as pooled:
        yield pooled


def beside(pooled):
    return closing(type(pooled)(pooled.settings_dict, alias=pooled.alias))


def backend(database):
    """Return the process of the server that answers a connection."""
    with database.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        return cursor.fetchone()[0]


def end(process_id):
    """End a process of the server, as its restart does, and wait until it is gone."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_terminate_backend(%s, 20000)", [process_id])
        assert cursor.fetchone() == (True,)


def test_an_idle_connection_that_the_server_has_closed_fails_no_statement():
    with separate_connection(pool_size=1) as pooled:
        ended = backend(pooled)
        pooled.close()  # back to the pool
        end(ended)

        assert backend(pooled) != ended


def test_after_a_lost_connection_the_idle_ones_are_replaced(pooled):
    """They led to the same server, which may be gone without a word."""
    with beside(pooled) as other:
        idle, used = backend(other), backend(pooled)
    end(used)
    with pytest.raises(OperationalError):
        backend(pooled)
    pooled.close()

    with beside(pooled) as other:
        assert {backend(pooled), backend(other)}.isdisjoint({idle, used})


def test_a_broken_transaction_replaces_no_other_connection(pooled):
    with beside(pooled) as other:
        idle = backend(other)
        backend(pooled)
    with pooled.cursor() as cursor, pytest.raises(OperationalError):
        cursor.execute("SET statement_timeout = 1; SELECT pg_sleep(5)")
    pooled.close()

    with beside(pooled) as other:
        assert idle in {backend(pooled), backend(other)}


def test_after_a_long_outage_no_request_waits_for_the_next_attempt_in_vain(pooled):
    """The pause between the attempts of a pool doubles. Then a request would get no connection for a minute."""
    pool = pooled.settings_dict["OPTIONS"]["pool"]

    assert pool["reconnect_timeout"] <= pool["timeout"]
