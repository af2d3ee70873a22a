"""A column for the Idempotency-Key of a run, whose ID was derived from it. IDs now begin with the time."""

from typing import Any

from django.db import migrations, models

CONSTRAINT = "one_run_per_idempotency_key"


def create_index(apps: Any, schema_editor: Any) -> None:
    concurrently = "CONCURRENTLY" if schema_editor.connection.vendor == "postgresql" else ""
    drop_index(apps, schema_editor)  # an interrupted migration may have left an invalid one
    schema_editor.execute(
        f"CREATE UNIQUE INDEX {concurrently} {CONSTRAINT} ON runs_app_agentrun (idempotency_id)"
        " WHERE idempotency_id IS NOT NULL"
    )


def drop_index(apps: Any, schema_editor: Any) -> None:
    concurrently = "CONCURRENTLY" if schema_editor.connection.vendor == "postgresql" else ""
    schema_editor.execute(f"DROP INDEX {concurrently} IF EXISTS {CONSTRAINT}")


class Migration(migrations.Migration):
    atomic = False

    dependencies = [
        ("runs_app", "0026_move_configurations"),
    ]

    operations = [
        migrations.AddField(
            model_name="agentrun",
            name="idempotency_id",
            field=models.UUIDField(editable=False, help_text="Of the user and the Idempotency-Key.", null=True),
        ),
        migrations.SeparateDatabaseAndState(
            database_operations=[migrations.RunPython(create_index, drop_index)],
            state_operations=[
                migrations.AddConstraint(
                    model_name="agentrun",
                    constraint=models.UniqueConstraint(
                        condition=models.Q(("idempotency_id__isnull", False)),
                        fields=("idempotency_id",),
                        name=CONSTRAINT,
                    ),
                ),
            ],
        ),
    ]
