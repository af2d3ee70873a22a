import django.db.models.deletion
import django.utils.timezone
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    """Threads and messages, which were models of runs. Their tables stay as they are."""

    initial = True

    dependencies = [
        ("agents_app", "0012_durable_agents"),
        ("runs_app", "0012_pending_calls"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.CreateModel(
                    name="Thread",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                            ),
                        ),
                        (
                            "key",
                            models.CharField(
                                editable=False,
                                help_text="Chosen by the API client.",
                                max_length=256,
                                verbose_name="thread ID",
                            ),
                        ),
                        ("agent_key", models.CharField(editable=False, max_length=256, verbose_name="agent ID")),
                        ("resource", models.CharField(blank=True, default="", editable=False, max_length=256)),
                        ("created_at", models.DateTimeField(default=django.utils.timezone.now, editable=False)),
                        ("updated_at", models.DateTimeField(default=django.utils.timezone.now, editable=False)),
                        (
                            "agent",
                            models.ForeignKey(
                                editable=False,
                                null=True,
                                on_delete=django.db.models.deletion.CASCADE,
                                related_name="threads",
                                to="agents_app.agent",
                            ),
                        ),
                        (
                            "user",
                            models.ForeignKey(
                                editable=False,
                                on_delete=django.db.models.deletion.CASCADE,
                                related_name="threads",
                                to=settings.AUTH_USER_MODEL,
                            ),
                        ),
                    ],
                    options={
                        "db_table": "runs_app_thread",
                        "ordering": ["-updated_at"],
                        "indexes": [models.Index(fields=["updated_at"], name="thread_updated")],
                        "constraints": [
                            models.UniqueConstraint(
                                fields=("user", "agent_key", "key"), name="one_thread_per_user_agent_and_key"
                            )
                        ],
                    },
                ),
                migrations.CreateModel(
                    name="Message",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                            ),
                        ),
                        ("number", models.PositiveIntegerField(editable=False)),
                        ("data", models.JSONField(editable=False)),
                        ("run_id", models.UUIDField(editable=False, null=True)),
                        ("created_at", models.DateTimeField(default=django.utils.timezone.now, editable=False)),
                        (
                            "thread",
                            models.ForeignKey(
                                editable=False,
                                on_delete=django.db.models.deletion.CASCADE,
                                related_name="messages",
                                to="memory_app.thread",
                            ),
                        ),
                    ],
                    options={
                        "db_table": "runs_app_message",
                        "ordering": ["thread_id", "number"],
                        "constraints": [
                            models.UniqueConstraint(
                                fields=("thread", "number"), name="one_message_per_thread_and_number"
                            )
                        ],
                    },
                ),
            ],
        ),
    ]
