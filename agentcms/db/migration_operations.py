"""Operations of migrations that do not block the writers of a growing table."""

from __future__ import annotations

from typing import Any

from django.contrib.postgres.operations import AddIndexConcurrently, RemoveIndexConcurrently
from django.db.migrations.operations import AddIndex, RemoveIndex


class AddIndexWithoutLock(AddIndexConcurrently):
    """Create an index `CONCURRENTLY` on PostgreSQL, and as usual on SQLite. Its migration is not atomic."""

    def database_forwards(self, app_label: str, schema_editor: Any, from_state: Any, to_state: Any) -> None:
        # An interrupted migration, which is not atomic, may have left the index, or an invalid one.
        drop_index(schema_editor, self.index.name)
        operation = AddIndexConcurrently if schema_editor.connection.vendor == "postgresql" else AddIndex
        operation.database_forwards(self, app_label, schema_editor, from_state, to_state)

    def database_backwards(self, app_label: str, schema_editor: Any, from_state: Any, to_state: Any) -> None:
        operation = AddIndexConcurrently if schema_editor.connection.vendor == "postgresql" else AddIndex
        operation.database_backwards(self, app_label, schema_editor, from_state, to_state)


class RemoveIndexWithoutLock(RemoveIndexConcurrently):
    """Remove an index `CONCURRENTLY` on PostgreSQL, and as usual on SQLite. Its migration is not atomic."""

    def database_forwards(self, app_label: str, schema_editor: Any, from_state: Any, to_state: Any) -> None:
        drop_index(schema_editor, self.name)

    def database_backwards(self, app_label: str, schema_editor: Any, from_state: Any, to_state: Any) -> None:
        operation = RemoveIndexConcurrently if schema_editor.connection.vendor == "postgresql" else RemoveIndex
        operation.database_backwards(self, app_label, schema_editor, from_state, to_state)


def drop_index(schema_editor: Any, name: str) -> None:
    """Drop an index if it exists."""
    concurrently = "CONCURRENTLY " if schema_editor.connection.vendor == "postgresql" else ""
    schema_editor.execute(f"DROP INDEX {concurrently}IF EXISTS {schema_editor.quote_name(name)}")
