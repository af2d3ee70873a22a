"""The database itself refuses to change a snapshot."""

from __future__ import annotations

from typing import Any

from django.db import connections, transaction

TABLE = "versions_app_agentversion"
TRIGGER_NAME = "agent_version_is_immutable"
TRIGGER_MESSAGE = "A version never changes; save the agent to make a new one."
# Not the link to the author, which ends with the user, nor the references, which may be read out of a snapshot anew.
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

SQLITE_STATEMENTS = (  # it runs one statement at a time, and replaces no trigger
    f"DROP TRIGGER IF EXISTS {TRIGGER_NAME}",
    f"""
    CREATE TRIGGER {TRIGGER_NAME} BEFORE UPDATE ON {TABLE} FOR EACH ROW
    WHEN {" OR ".join(f"OLD.{column} IS NOT NEW.{column}" for column in IMMUTABLE_COLUMNS)}
    BEGIN SELECT RAISE(ABORT, '{TRIGGER_MESSAGE}'); END;
""",
)


def install(using: str, **kwargs: Any) -> None:
    """Make the trigger after every migration: a table that SQLite rebuilt has lost it."""
    connection = connections[using]
    if TABLE not in connection.introspection.table_names():  # migrated back to before the first migration
        return
    with transaction.atomic(using), connection.cursor() as cursor:
        for statement in POSTGRESQL_STATEMENTS if connection.vendor == "postgresql" else SQLITE_STATEMENTS:
            cursor.execute(statement)


def is_installed(using: str = "default") -> bool:
    """Whether the trigger is there."""
    connection = connections[using]
    table, column = ("pg_trigger", "tgname") if connection.vendor == "postgresql" else ("sqlite_master", "name")
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT 1 FROM {table} WHERE {column} = %s", [TRIGGER_NAME])  # noqa: S608  no input in it
        return cursor.fetchone() is not None
