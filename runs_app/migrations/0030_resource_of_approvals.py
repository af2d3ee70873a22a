"""A column for the resource of calls that waited for people, which outlive their runs."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("runs_app", "0029_compact_json"),
    ]

    operations = [
        migrations.AddField(
            model_name="pendingcall",
            name="resource_digest",
            field=models.CharField(
                blank=True,
                db_default="",
                default="",
                editable=False,
                help_text="The hash of the resource.",
                max_length=64,
            ),
        ),
    ]
