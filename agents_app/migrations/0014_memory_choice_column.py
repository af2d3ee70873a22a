from django.db import migrations, models


class Migration(migrations.Migration):
    """The memory of an agent may be an object, so it gets a column for JSON.

    The column `memory` stays: code of the previous release reads and writes it.
    """

    dependencies = [
        ("agents_app", "0013_mcp_clients_of_agents"),
    ]

    operations = [
        migrations.SeparateDatabaseAndState(
            state_operations=[migrations.RemoveField(model_name="agent", name="memory")]
        ),
        migrations.AddField(
            model_name="agent",
            name="memory",
            field=models.JSONField(
                blank=True,
                db_column="memory_choice",
                help_text='The key of a registered memory, or {"options": {"lastMessages": 10, …}}.',
                null=True,
            ),
        ),
    ]
