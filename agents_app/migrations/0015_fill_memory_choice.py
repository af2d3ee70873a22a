"""Copy the keys of memories into the column for JSON, and back."""

from __future__ import annotations

from typing import Any

from django.db import migrations, transaction

TABLE = "agents_app_agent"
BATCH_SIZE = 1000  # rows per transaction
# The value of each column in terms of the other one, by database. The earlier column has no value for an object.
TO_JSON = {"postgresql": "to_jsonb(memory)", "sqlite": "json_quote(memory)"}
TO_KEY = {
    "postgresql": "CASE WHEN jsonb_typeof(memory_choice) = 'string' THEN memory_choice #>> '{}' END",
    "sqlite": "CASE WHEN json_type(memory_choice) = 'text' THEN json_extract(memory_choice, '$') END",
}


def fill(apps: Any, schema_editor: Any) -> None:
    connection = schema_editor.connection
    copy(connection, f"memory_choice = {TO_JSON[connection.vendor]}", "memory IS NOT NULL AND memory_choice IS NULL")


def restore(apps: Any, schema_editor: Any) -> None:
    connection = schema_editor.connection
    copy(connection, f"memory = {TO_KEY[connection.vendor]}", "TRUE")


def copy(connection: Any, assignment: str, condition: str) -> None:
    """Update the rows of the agents that meet a condition in batches, in the order of their IDs."""
    last = ""
    while True:
        with transaction.atomic(using=connection.alias), connection.cursor() as cursor:
            cursor.execute(f"SELECT id FROM {TABLE} WHERE id > %s ORDER BY id LIMIT {BATCH_SIZE}", [last])  # noqa: S608
            ids = [row[0] for row in cursor.fetchall()]
            if not ids:
                return
            marks = ", ".join(["%s"] * len(ids))
            cursor.execute(f"UPDATE {TABLE} SET {assignment} WHERE id IN ({marks}) AND {condition}", ids)  # noqa: S608
            last = ids[-1]


class Migration(migrations.Migration):
    atomic = False  # each batch is a transaction

    dependencies = [
        ("agents_app", "0014_memory_choice_column"),
    ]

    operations = [
        migrations.RunPython(fill, restore),
    ]
