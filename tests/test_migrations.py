"""The migrations of all applications."""

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
def test_every_change_of_a_model_has_its_migration():
    call_command("makemigrations", "--check", "--dry-run", verbosity=0)


@pytest.mark.parametrize(("app", "migration"), OURS, ids=str)
def test_a_migration_says_what_it_does_and_can_be_taken_back(app, migration):
    assert "auto" not in migration.name
    assert [operation for operation in migration.operations if not operation.reversible] == []


RENAMES = (operations.RenameField, operations.RenameModel, operations.AlterModelTable)


@pytest.mark.parametrize(("app", "migration"), OURS, ids=str)
def test_what_still_serves_outlives_a_migration(app, migration):
    """Old code inserts rows without a new column, and asks for tables and columns by the names it knows."""
    added = [each for each in migration.operations if isinstance(each, operations.AddField)]

    assert [each for each in migration.operations if isinstance(each, RENAMES)] == []
    assert [each.name for each in added if not (each.field.null or each.field.has_db_default())] == []


def test_every_application_of_ours_was_looked_at():
    with_models = {model._meta.app_label for model in apps.get_models()} & {*APPS}

    assert {app for app, _ in OURS} == with_models
