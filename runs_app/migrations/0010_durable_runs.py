import django.db.models.deletion
import django.utils.timezone
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("runs_app", "0009_saved_input_variables"),
    ]

    operations = [
        migrations.AddField(
            model_name="agentrun",
            name="attempts",
            field=models.PositiveIntegerField(
                db_default=0, default=0, editable=False, help_text="Processes lost since the last finished step."
            ),
        ),
        migrations.AddField(
            model_name="agentrun",
            name="fence",
            field=models.PositiveIntegerField(
                db_default=0,
                default=0,
                editable=False,
                help_text="The number of claims. Each write names the latest.",
            ),
        ),
        migrations.AddField(
            model_name="agentrun",
            name="is_durable",
            field=models.BooleanField(db_default=False, default=False, editable=False, verbose_name="durable"),
        ),
        migrations.AddField(
            model_name="agentrun",
            name="root_id",
            field=models.UUIDField(editable=False, null=True),
        ),
        migrations.AddField(
            model_name="agentrun",
            name="segment",
            field=models.PositiveIntegerField(
                db_default=0,
                default=0,
                editable=False,
                help_text="The number of times that the run has waited for people.",
            ),
        ),
        migrations.AddField(
            model_name="agentrun",
            name="suspended_at",
            field=models.DateTimeField(editable=False, null=True),
        ),
        migrations.AddField(
            model_name="agentrun",
            name="worked_ms",
            field=models.PositiveBigIntegerField(
                db_default=0,
                default=0,
                editable=False,
                help_text="Before the current process took it.",
                verbose_name="worked for (ms)",
            ),
        ),
        migrations.CreateModel(
            name="RunStep",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                (
                    "run",
                    models.ForeignKey(
                        db_index=False,
                        editable=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="steps",
                        to="runs_app.agentrun",
                    ),
                ),
                (
                    "key",
                    models.CharField(editable=False, help_text="Unique in the run, such as 0/m/1.", max_length=192),
                ),
                (
                    "kind",
                    models.CharField(
                        choices=[
                            ("model", "Request to the model"),
                            ("tool", "Tool call"),
                            ("capability", "Memory or processor"),
                            ("other", "Other"),
                        ],
                        editable=False,
                        max_length=16,
                    ),
                ),
                (
                    "name",
                    models.CharField(
                        blank=True, editable=False, help_text="The tool or the model, for people.", max_length=128
                    ),
                ),
                (
                    "state",
                    models.CharField(choices=[("started", "Started"), ("done", "Done")], editable=False, max_length=8),
                ),
                (
                    "mark",
                    models.CharField(
                        blank=True, editable=False, help_text="A hash of the input of the step.", max_length=16
                    ),
                ),
                ("attempts", models.PositiveIntegerField(default=1, editable=False)),
                ("result", models.JSONField(editable=False, null=True)),
                ("started_at", models.DateTimeField(default=django.utils.timezone.now, editable=False)),
                ("finished_at", models.DateTimeField(editable=False, null=True)),
            ],
            options={"verbose_name": "step", "ordering": ["run_id", "id"]},
        ),
        migrations.AddConstraint(
            model_name="runstep",
            constraint=models.UniqueConstraint(fields=("run", "key"), name="one_step_per_run_and_key"),
        ),
    ]
