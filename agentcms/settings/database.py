"""The database."""

from agentcms import environment
from agentcms.db.database_settings import database_config
from agentcms.settings.paths import DATA_DIR

DATABASE_URL = environment.read_server_url("DATABASE_URL", "postgres", "postgresql", "sqlite")
# As many as WEB_THREADS, so that requests do not wait for a connection. The check agentcms.W001 compares both.
DATABASE_POOL_SIZE = environment.read_int("DATABASE_POOL_SIZE", 16, minimum=1)
DATABASE_PREPARE = environment.read_bool("DATABASE_PREPARE", default=True)
DATABASE_LOCK_TIMEOUT = environment.read_int("DATABASE_LOCK_TIMEOUT", 20, minimum=1, maximum=86_400)
DATABASE_STATEMENT_TIMEOUT = environment.read_int("DATABASE_STATEMENT_TIMEOUT", 60, minimum=0, maximum=86_400)
DATABASES = {
    "default": database_config(
        DATABASE_URL,
        DATA_DIR,
        pool_size=DATABASE_POOL_SIZE,
        use_prepared_statements=DATABASE_PREPARE,
        lock_timeout=DATABASE_LOCK_TIMEOUT,
        # Otherwise a process that hangs in a transaction would keep its locks for ever.
        idle_timeout=environment.read_int("DATABASE_IDLE_TIMEOUT", 60, minimum=0, maximum=86_400),
    )
}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
