from django.db import migrations, models


class Migration(migrations.Migration):
    """Agents name knowledge bases. Code of the previous release neither reads nor writes the column."""

    dependencies = [
        ("agents_app", "0016_background_tasks_of_agents"),
    ]

    operations = [
        migrations.AddField(
            model_name="agent",
            name="knowledge",
            field=models.JSONField(
                blank=True, help_text='{"base": {"filter": {"key": "value"}, "topK": 5}}', null=True
            ),
        ),
    ]
