import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    """Threads and messages belong to memory_app. Their tables stay as they are."""

    dependencies = [
        ("memory_app", "0001_threads"),
        ("runs_app", "0012_pending_calls"),
    ]

    operations = [
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.AlterField(
                    model_name="agentrun",
                    name="thread",
                    field=models.ForeignKey(
                        editable=False,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="runs",
                        to="memory_app.thread",
                    ),
                ),
                migrations.DeleteModel("Message"),
                migrations.DeleteModel("Thread"),
            ],
        ),
    ]
