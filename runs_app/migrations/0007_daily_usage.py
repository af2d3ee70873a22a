import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("agents_app", "0010_archived_agents"),
        ("runs_app", "0006_allowed_model_settings"),
    ]

    operations = [
        migrations.CreateModel(
            name="DailyUsage",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "owner_id",
                    models.CharField(
                        blank=True, default="", editable=False, max_length=128, verbose_name="owner of the runs"
                    ),
                ),
                ("version_number", models.PositiveIntegerField(editable=False, help_text="0 for unsaved text.")),
                ("day", models.DateField(editable=False)),
                ("runs", models.PositiveIntegerField(editable=False)),
                ("errors", models.PositiveIntegerField(editable=False)),
                ("tokens", models.PositiveBigIntegerField(editable=False)),
                (
                    "cost",
                    models.DecimalField(
                        decimal_places=8,
                        editable=False,
                        max_digits=18,
                        null=True,
                        verbose_name="cost in US dollars",
                    ),
                ),
                (
                    "durations",
                    models.JSONField(editable=False, help_text="The number of runs by bucket of the histogram."),
                ),
                (
                    "scores",
                    models.JSONField(editable=False, help_text="By scorer: the number of scores, and their sum."),
                ),
                (
                    "agent",
                    models.ForeignKey(
                        db_index=False,
                        editable=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="agents_app.agent",
                    ),
                ),
            ],
            options={
                "verbose_name": "use per day",
                "verbose_name_plural": "use per day",
                "ordering": ["agent", "day", "version_number", "owner_id"],
                "indexes": [models.Index(fields=["day"], name="usage_day")],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("agent", "day", "version_number", "owner_id"), name="one_usage_per_day"
                    )
                ],
            },
        ),
    ]
