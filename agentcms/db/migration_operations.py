"""Operations of migrations: indexes that do not block the writers of a growing table, and the order of columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.contrib.postgres.operations import AddIndexConcurrently, RemoveIndexConcurrently
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.operations import AddIndex, RemoveIndex
from django.db.migrations.operations.models import ModelOperation
from django.db.migrations.state import ProjectState


class AddIndexWithoutLock(AddIndexConcurrently):
    """Create an index `CONCURRENTLY` on PostgreSQL, and as usual on SQLite. Its migration is not atomic."""

    def database_forwards(
        self, app_label: str, schema_editor: BaseDatabaseSchemaEditor, from_state: ProjectState, to_state: ProjectState
    ) -> None:
        # An interrupted migration, which is not atomic, may have left the index, or an invalid one.
        drop_index(schema_editor, self.index.name)
        operation = AddIndexConcurrently if schema_editor.connection.vendor == "postgresql" else AddIndex
        operation.database_forwards(self, app_label, schema_editor, from_state, to_state)

    def database_backwards(
        self, app_label: str, schema_editor: BaseDatabaseSchemaEditor, from_state: ProjectState, to_state: ProjectState
    ) -> None:
        operation = AddIndexConcurrently if schema_editor.connection.vendor == "postgresql" else AddIndex
        operation.database_backwards(self, app_label, schema_editor, from_state, to_state)


class RemoveIndexWithoutLock(RemoveIndexConcurrently):
    """Remove an index `CONCURRENTLY` on PostgreSQL, and as usual on SQLite. Its migration is not atomic."""

    def database_forwards(
        self, app_label: str, schema_editor: BaseDatabaseSchemaEditor, from_state: ProjectState, to_state: ProjectState
    ) -> None:
        # Not Django's operation: on SQLite it fails if an interrupted migration has already removed the index.
        drop_index(schema_editor, self.name)

    def database_backwards(
        self, app_label: str, schema_editor: BaseDatabaseSchemaEditor, from_state: ProjectState, to_state: ProjectState
    ) -> None:
        operation = RemoveIndexConcurrently if schema_editor.connection.vendor == "postgresql" else RemoveIndex
        operation.database_backwards(self, app_label, schema_editor, from_state, to_state)


class MoveColumnsToEnd(ModelOperation):
    """Move columns with long values to the end of a table on SQLite. PostgreSQL stores long values apart.

    SQLite stores a row that does not fit into a page as a chain of pages, and reads all pages up to the column that is
    asked for: "Chains of overflow pages" in https://sqlite.org/fileformat2.html. The table is copied.
    """

    def __init__(self, model_name: str, fields: Sequence[str]) -> None:
        """Take the names of the fields, in the order that they are to have."""
        self.fields = fields
        super().__init__(model_name)

    def deconstruct(self) -> tuple[str, list[Any], dict[str, Any]]:
        return self.__class__.__name__, [self.name, self.fields], {}

    def state_forwards(self, app_label: str, state: ProjectState) -> None:
        fields = state.models[app_label, self.name_lower].fields
        for name in self.fields:
            fields[name] = fields.pop(name)
        state.reload_model(app_label, self.name_lower, delay=True)

    def database_forwards(
        self, app_label: str, schema_editor: BaseDatabaseSchemaEditor, from_state: ProjectState, to_state: ProjectState
    ) -> None:
        model = to_state.apps.get_model(app_label, self.name)
        if schema_editor.connection.vendor == "sqlite":
            schema_editor._remake_table(model)  # type: ignore[attr-defined]

    def database_backwards(
        self, app_label: str, schema_editor: BaseDatabaseSchemaEditor, from_state: ProjectState, to_state: ProjectState
    ) -> None:
        self.database_forwards(app_label, schema_editor, from_state, to_state)

    def describe(self) -> str:
        return f"Move {', '.join(self.fields)} to the end of the columns of {self.name}"


def drop_index(schema_editor: BaseDatabaseSchemaEditor, name: str) -> None:
    """Drop an index if it exists."""
    concurrently = "CONCURRENTLY " if schema_editor.connection.vendor == "postgresql" else ""
    schema_editor.execute(f"DROP INDEX {concurrently}IF EXISTS {schema_editor.quote_name(name)}")
