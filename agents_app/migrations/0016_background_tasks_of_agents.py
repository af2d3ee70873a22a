from django.db import migrations, models


class Migration(migrations.Migration):
    """Agents say which tools run in the background. Code of the previous release does not use the column."""

    dependencies = [
        ("agents_app", "0015_fill_memory_choice"),
    ]

    operations = [
        migrations.AddField(
            model_name="agent",
            name="background_tasks",
            field=models.JSONField(
                blank=True, help_text='{"tools": {"tool": {"enabled": true, "timeoutMs": 600000}}}', null=True
            ),
        ),
    ]
