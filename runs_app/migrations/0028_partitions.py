"""Partitions by day of the events and steps of runs on PostgreSQL, and keys of two columns on both databases.

The existing table becomes the default partition, so no row moves. The column `id` stays for one release, empty for new
rows on PostgreSQL, because processes of the previous release read it.
"""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from typing import Any
from uuid import UUID

import django.db.models.deletion
from django.db import migrations, models, transaction

DAYS_AHEAD = 4
TABLES = {"runs_app_runevent": "number", "runs_app_runstep": "key"}  # with the second column of the key
CONSTRAINTS = {"runs_app_runevent": "one_event_per_run_and_number", "runs_app_runstep": "one_step_per_run_and_key"}


def change_tables(apps: Any, schema_editor: Any) -> None:
    if schema_editor.connection.vendor == "sqlite":
        drop_index_of_runs(schema_editor)
        return
    for table, column in TABLES.items():
        if is_partitioned(schema_editor, table):
            continue
        schema_editor.execute(f"DROP INDEX CONCURRENTLY IF EXISTS {table}_default_key")
        schema_editor.execute(f"CREATE UNIQUE INDEX CONCURRENTLY {table}_default_key ON {table} (run_id, {column})")
        with transaction.atomic():
            replace_table(schema_editor, table, column)


def drop_index_of_runs(schema_editor: Any) -> None:
    """Drop the index of the events that the longer one of the key covers."""
    with schema_editor.connection.cursor() as cursor:
        constraints = schema_editor.connection.introspection.get_constraints(cursor, "runs_app_runevent")
    for name, constraint in constraints.items():
        if constraint["columns"] == ["run_id"] and constraint["index"] and not constraint["unique"]:
            schema_editor.execute(f'DROP INDEX "{name}"')


def is_partitioned(schema_editor: Any, table: str) -> bool:
    return bool(rows(schema_editor, "SELECT 1 FROM pg_partitioned_table WHERE partrelid = to_regclass(%s)", [table]))


def rows(schema_editor: Any, sql: str, parameters: list[Any] | None = None) -> list[tuple[Any, ...]]:
    with schema_editor.connection.cursor() as cursor:
        cursor.execute(sql, parameters or [])
        found: list[tuple[Any, ...]] = cursor.fetchall()
    return found


def replace_table(schema_editor: Any, table: str, column: str) -> None:
    default = f"{table}_default"
    keys = "SELECT conname FROM pg_constraint WHERE conrelid = to_regclass(%s) AND contype IN ('p', 'u')"
    drops = [f'DROP CONSTRAINT "{name}"' for (name,) in rows(schema_editor, keys, [table])]
    changes = ["ALTER COLUMN id DROP IDENTITY IF EXISTS", "ALTER COLUMN id DROP NOT NULL"]
    schema_editor.execute(f"ALTER TABLE {table} {', '.join([*drops, *changes])}")
    schema_editor.execute(f"ALTER TABLE {table} ADD PRIMARY KEY USING INDEX {default}_key")
    covered = "SELECT indexrelid::regclass::text FROM pg_index WHERE indrelid = to_regclass(%s) AND NOT indisprimary"
    for (name,) in rows(schema_editor, covered, [table]):
        schema_editor.execute(f"DROP INDEX {name}")
    schema_editor.execute(f"ALTER TABLE {table} RENAME TO {default}")
    schema_editor.execute(
        f"CREATE TABLE {table} (LIKE {default} INCLUDING DEFAULTS INCLUDING CONSTRAINTS) PARTITION BY RANGE (run_id)"
    )
    schema_editor.execute(f"ALTER TABLE {table} ADD PRIMARY KEY (run_id, {column})")
    schema_editor.execute(
        f"ALTER TABLE {table} ADD CONSTRAINT {table}_run_id_fk FOREIGN KEY (run_id)"
        " REFERENCES runs_app_agentrun (id) DEFERRABLE INITIALLY DEFERRED"
    )
    # Before the default partition, which is then read only once.
    for day in partition_days(bool(rows(schema_editor, f"SELECT 1 FROM {default} LIMIT 1"))):  # noqa: S608
        schema_editor.execute(
            f"CREATE TABLE {table}_{day:%Y%m%d} PARTITION OF {table}"
            f" FOR VALUES FROM ('{first_id(day)}') TO ('{first_id(day + timedelta(days=1))}')"
        )
    schema_editor.execute(f"ALTER TABLE {table} ATTACH PARTITION {default} DEFAULT")


def partition_days(has_rows: bool) -> list[Any]:
    """Return the days of the first partitions. Existing rows of today are in the default partition."""
    today = datetime.now(UTC).date()
    return [today + timedelta(days=number) for number in range(int(has_rows), DAYS_AHEAD + 1)]


def first_id(day: date) -> UUID:
    """Return the smallest version 7 UUID of a day."""
    return UUID(int=int(datetime.combine(day, time(), UTC).timestamp()) * 1000 << 80)


def restore_tables(apps: Any, schema_editor: Any) -> None:
    if schema_editor.connection.vendor == "sqlite":
        schema_editor.execute("CREATE INDEX runs_app_runevent_run_id ON runs_app_runevent (run_id)")
        return
    for table, column in TABLES.items():
        with transaction.atomic():
            schema_editor.execute(f"CREATE TABLE {table}_new (LIKE {table} INCLUDING DEFAULTS INCLUDING CONSTRAINTS)")
            schema_editor.execute(f"INSERT INTO {table}_new SELECT * FROM {table}")  # noqa: S608
            schema_editor.execute(f"DROP TABLE {table}")
            schema_editor.execute(f"ALTER TABLE {table}_new RENAME TO {table}")
            schema_editor.execute(
                f"ALTER TABLE {table} DROP COLUMN id,"
                " ADD COLUMN id bigint GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY,"
                f" ADD CONSTRAINT {CONSTRAINTS[table]} UNIQUE (run_id, {column}),"
                f" ADD CONSTRAINT {table}_run_id_fk FOREIGN KEY (run_id)"
                " REFERENCES runs_app_agentrun (id) DEFERRABLE INITIALLY DEFERRED"
            )


class Migration(migrations.Migration):
    atomic = False

    dependencies = [
        ("runs_app", "0027_idempotency_of_runs"),
    ]

    operations = [
        migrations.SeparateDatabaseAndState(
            database_operations=[migrations.RunPython(change_tables, restore_tables)],
            state_operations=[
                migrations.AlterModelOptions(
                    name="runstep",
                    options={"ordering": ["run_id", "started_at", "key"], "verbose_name": "step"},
                ),
                migrations.RemoveConstraint("runevent", "one_event_per_run_and_number"),
                migrations.RemoveConstraint("runstep", "one_step_per_run_and_key"),
                migrations.RemoveField("runevent", "id"),
                migrations.RemoveField("runstep", "id"),
                migrations.AddField(
                    model_name="runevent",
                    name="pk",
                    field=models.CompositePrimaryKey(
                        "run_id", "number", blank=True, editable=False, primary_key=True, serialize=False
                    ),
                ),
                migrations.AddField(
                    model_name="runstep",
                    name="pk",
                    field=models.CompositePrimaryKey(
                        "run_id", "key", blank=True, editable=False, primary_key=True, serialize=False
                    ),
                ),
                migrations.AlterField(
                    model_name="runevent",
                    name="run",
                    field=models.ForeignKey(
                        db_index=False,
                        editable=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="events",
                        to="runs_app.agentrun",
                    ),
                ),
            ],
        ),
    ]
