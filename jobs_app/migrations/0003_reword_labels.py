from django.db import migrations, models


class Migration(migrations.Migration):
    """New wording of labels and help texts. No column changes."""

    dependencies = [
        ("jobs_app", "0002_heartbeat"),
    ]

    operations = [
        migrations.AlterField(
            model_name="job",
            name="cursor",
            field=models.JSONField(
                editable=False, help_text="The position where the next attempt continues.", null=True
            ),
        ),
    ]
