from django.db import migrations, models


class Migration(migrations.Migration):
    """Agents say whether their runs are durable. Code of the previous release neither reads nor writes the column."""

    dependencies = [
        ("agents_app", "0011_declared_variables"),
    ]

    operations = [
        migrations.AddField(
            model_name="agent",
            name="durable",
            field=models.JSONField(
                blank=True,
                help_text='Whether runs survive their process: true, false or {"maxSteps": 20}. '
                "Blank: as RUN_DURABLE says.",
                null=True,
            ),
        ),
    ]
