"""The team of the agent of a thread at its start."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("memory_app", "0010_index_threads_of_resource_keys"),
    ]

    operations = [
        migrations.AddField(
            model_name="thread",
            name="agent_owner_id",
            field=models.CharField(
                editable=False, max_length=128, null=True, verbose_name="team of the agent at the start"
            ),
        ),
    ]
