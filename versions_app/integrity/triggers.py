"""The database trigger that rejects changes of versions."""

from __future__ import annotations

from django.db import connection, connections, transaction

TABLE = "versions_app_agentversion"
TRIGGER_NAME = "agent_version_is_immutable"
TRIGGER_MESSAGE = "A version never changes; save the agent to make a new one."
# Without author_id, which becomes null with the user, and without references, which can be derived again.
IMMUTABLE_COLUMNS = (
    "id",
    "agent_id",
    "version_number",
    "snapshot",
    "snapshot_hash",
    "based_on",
    "changed_fields",
    "author_name",
    "source",
    "created_at",
)

POSTGRESQL_STATEMENTS = (
    f"""
    CREATE OR REPLACE FUNCTION {TRIGGER_NAME}() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        RAISE EXCEPTION '{TRIGGER_MESSAGE}' USING ERRCODE = 'integrity_constraint_violation';
    END $$;
    CREATE OR REPLACE TRIGGER {TRIGGER_NAME} BEFORE UPDATE ON {TABLE} FOR EACH ROW
    WHEN ({" OR ".join(f"OLD.{column} IS DISTINCT FROM NEW.{column}" for column in IMMUTABLE_COLUMNS)})
    EXECUTE FUNCTION {TRIGGER_NAME}();
""",
)

SQLITE_STATEMENTS = (  # SQLite runs one statement at a time and cannot replace a trigger
    f"DROP TRIGGER IF EXISTS {TRIGGER_NAME}",
    f"""
    CREATE TRIGGER {TRIGGER_NAME} BEFORE UPDATE ON {TABLE} FOR EACH ROW
    WHEN {" OR ".join(f"OLD.{column} IS NOT NEW.{column}" for column in IMMUTABLE_COLUMNS)}
    BEGIN SELECT RAISE(ABORT, '{TRIGGER_MESSAGE}'); END;
""",
)


def install_trigger(using: str, **kwargs: object) -> None:
    """Install the trigger. Called after every migration, because SQLite drops it when it rebuilds the table."""
    migrated = connections[using]
    if TABLE not in migrated.introspection.table_names():  # all migrations were reversed
        return
    with transaction.atomic(using), migrated.cursor() as cursor:
        for statement in POSTGRESQL_STATEMENTS if migrated.vendor == "postgresql" else SQLITE_STATEMENTS:
            cursor.execute(statement)


def is_trigger_installed() -> bool:
    """Return True if the trigger exists."""
    table, column = ("pg_trigger", "tgname") if connection.vendor == "postgresql" else ("sqlite_master", "name")
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT 1 FROM {table} WHERE {column} = %s", [TRIGGER_NAME])  # noqa: S608  no input in it
        return cursor.fetchone() is not None
