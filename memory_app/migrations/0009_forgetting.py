from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("memory_app", "0008_observations"),
    ]

    operations = [
        migrations.AddField(
            model_name="resource",
            name="forgetting_since",
            field=models.DateTimeField(
                editable=False,
                help_text="Since when a job deletes its data. Nothing new is added to it meanwhile.",
                null=True,
            ),
        ),
    ]
