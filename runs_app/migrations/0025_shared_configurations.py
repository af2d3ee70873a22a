"""Configurations in a table of their own, which runs share. Processes of the previous release use the column."""

import django.db.models.deletion
import django.utils.timezone
from django.db import migrations, models

from agentcms.db.migration_operations import AddIndexWithoutLock


class Migration(migrations.Migration):
    atomic = False

    dependencies = [
        ("runs_app", "0024_messages_that_decided_calls"),
    ]

    operations = [
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.RenameField("agentrun", "configuration", "stored_configuration"),
                migrations.AlterField(
                    "agentrun",
                    "stored_configuration",
                    models.JSONField(
                        db_column="configuration",
                        default=dict,
                        editable=False,
                        help_text="Of the previous release.",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="RunConfiguration",
            fields=[
                ("id", models.UUIDField(editable=False, primary_key=True, serialize=False)),
                ("text", models.TextField(editable=False, help_text="Canonical JSON.")),
                ("used_at", models.DateTimeField(default=django.utils.timezone.now, editable=False)),
            ],
            options={
                "verbose_name": "configuration of runs",
                "indexes": [models.Index(fields=["used_at"], name="run_configuration_use")],
            },
        ),
        migrations.AddField(
            model_name="agentrun",
            name="shared_configuration",
            field=models.ForeignKey(
                db_index=False,
                editable=False,
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="runs",
                to="runs_app.runconfiguration",
            ),
        ),
        AddIndexWithoutLock(
            model_name="agentrun",
            index=models.Index(fields=["shared_configuration"], name="run_of_configuration"),
        ),
    ]
