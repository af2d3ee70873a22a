from django.db import migrations, models


class Migration(migrations.Migration):
    """An index for the list of archived agents, which the index of other lists leaves out."""

    dependencies = [
        ("agents_app", "0019_partial_list_index"),
        ("versions_app", "0010_reword_labels"),
    ]

    operations = [
        migrations.AddIndex(
            model_name="agent",
            index=models.Index(
                condition=models.Q(("active_version__isnull", False), ("archived_at__isnull", False)),
                fields=["-created_at", "id", "active_version", "archived_at"],
                name="agent_archived",
            ),
        ),
    ]
