"""The index of the foreign key alone, which `version_of_author` replaces, is dropped."""

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

from agentcms.db.migration_operations import drop_index

TABLE = "versions_app_agentversion"
COLUMN = "author_id"


def drop(apps, schema_editor):
    """By its name in the database: altering the column would make SQLite rebuild the table without its triggers."""
    with schema_editor.connection.cursor() as cursor:
        found = schema_editor.connection.introspection.get_constraints(cursor, TABLE)
    for name, each in found.items():
        if each["index"] and each["columns"] == [COLUMN] and not each["unique"]:
            drop_index(schema_editor, name)


def create(apps, schema_editor):
    name = f"{TABLE}_{COLUMN}_index"
    concurrently = "CONCURRENTLY " if schema_editor.connection.vendor == "postgresql" else ""
    # An interrupted migration, which is not atomic, may have left an invalid one.
    drop_index(schema_editor, name)
    schema_editor.execute(f"CREATE INDEX {concurrently}{name} ON {TABLE} ({COLUMN})")


class Migration(migrations.Migration):
    atomic = False  # an index is dropped concurrently outside of transactions only

    dependencies = [
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
        ("versions_app", "0011_index_authors"),
    ]

    operations = [
        migrations.SeparateDatabaseAndState(
            database_operations=[migrations.RunPython(drop, create)],
            state_operations=[
                migrations.AlterField(
                    model_name="agentversion",
                    name="author",
                    field=models.ForeignKey(
                        db_index=False,
                        editable=False,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
        ),
    ]
