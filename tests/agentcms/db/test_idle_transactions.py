"""Transactions of PostgreSQL that wait for a hanging process."""

from contextlib import closing

import pytest
from django.conf import settings
from django.db import Error, connection, connections

from agentcms.api.exceptions import api_error
from agentcms.db.configuration import database_config

LOCK_FIRST_USER = "SELECT 1 FROM auth_user ORDER BY id LIMIT 1 FOR UPDATE"


@pytest.fixture
def hanging_connection():
    """Return a connection whose transactions may wait for one second."""
    config = database_config(
        settings.DATABASE_URL,
        settings.DATA_DIR,
        pool_size=1,
        use_prepared_statements=True,
        lock_timeout=1,
        idle_timeout=1,
    )
    wrapper = type(connections["default"])
    hanging = wrapper({**connection.settings_dict, "OPTIONS": config["OPTIONS"]}, alias="hanging")
    with closing(hanging):
        yield hanging
    hanging.close_pool()


@pytest.mark.django_db(transaction=True)
@pytest.mark.postgres_only
def test_a_transaction_that_waits_for_its_process_too_long_loses_its_locks(hanging_connection, django_user_model):
    django_user_model.objects.create(username="ada")
    hanging_connection.set_autocommit(False)
    with hanging_connection.cursor() as cursor:
        cursor.execute(LOCK_FIRST_USER)

        with connection.cursor() as other:  # waits until PostgreSQL ends the transaction
            other.execute(LOCK_FIRST_USER)
        with pytest.raises(Error) as raised:
            cursor.execute("SELECT 1")

    error = api_error(raised.value)
    assert (error.status, error.headers["Retry-After"]) == (503, "1")
