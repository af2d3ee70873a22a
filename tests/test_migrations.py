"""The migrations of all applications."""

from itertools import pairwise

import pytest
from django.apps import apps
from django.core.management import call_command
from django.db.migrations import operations
from django.db.migrations.loader import MigrationLoader

from tests.test_layers import APPS

# Sorted: the loader finds them in another order in every process, and each worker of the tests must find the same.
FOUND = sorted(MigrationLoader(None).disk_migrations.items())
OURS = [(app, migration) for (app, _), migration in FOUND if app in APPS]


@pytest.mark.django_db
def test_every_model_change_has_a_migration():
    call_command("makemigrations", "--check", "--dry-run", verbosity=0)


@pytest.mark.parametrize(("app", "migration"), OURS, ids=str)
def test_a_migration_has_a_name_and_a_reverse(app, migration):
    assert "auto" not in migration.name
    assert [operation for operation in migration.operations if not operation.reversible] == []


def renames_storage(app, migration):
    """Return the operations that give a column or a table another name.

    A model may be renamed where the operation before it pins the table to the name it has.
    """
    renames = []
    for before, operation in pairwise([None, *migration.operations]):
        if isinstance(operation, operations.AlterModelTable):
            if operation.table != f"{app}_{operation.name}":
                renames.append(operation)
        elif isinstance(operation, operations.RenameField):
            renames.append(operation)
        elif isinstance(operation, operations.RenameModel):
            pinned = isinstance(before, operations.AlterModelTable) and before.name == operation.old_name.lower()
            renames += [] if pinned else [operation]
    return renames


@pytest.mark.parametrize(("app", "migration"), OURS, ids=str)
def test_migrations_are_compatible_with_the_previous_release(app, migration):
    """Old code inserts rows without a new column, and asks for tables and columns by the names it knows."""
    added = [operation for operation in migration.operations if isinstance(operation, operations.AddField)]

    assert renames_storage(app, migration) == []
    assert [
        operation.name for operation in added if not (operation.field.null or operation.field.has_db_default())
    ] == []


def test_every_app_is_checked():
    with_models = {model._meta.app_label for model in apps.get_models()} & {*APPS}

    assert {app for app, _ in OURS} == with_models
