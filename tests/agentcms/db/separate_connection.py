"""A connection to the database of the tests, with a pool and limits of its own."""

from contextlib import closing, contextmanager

from django.conf import settings
from django.db import connection, connections

from agentcms.db.database_settings import database_config


@contextmanager
def separate_connection(*, use_prepared_statements=True, lock_timeout=5, idle_timeout=60, pool_size=1):
    """Provide a connection of PostgreSQL. The timeouts are seconds."""
    config = database_config(
        settings.DATABASE_URL,
        settings.DATA_DIR,
        pool_size=pool_size,
        use_prepared_statements=use_prepared_statements,
        lock_timeout=lock_timeout,
        idle_timeout=idle_timeout,
    )
    options = {**connection.settings_dict, "OPTIONS": config["OPTIONS"]}
    separate = type(connections["default"])(options, alias="separate")
    with closing(separate):
        yield separate
    separate.close_pool()
