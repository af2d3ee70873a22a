from django.db import migrations, models


class Migration(migrations.Migration):
    """The index that lists read has their conditions, so that they need not test each of its entries."""

    dependencies = [
        ("agents_app", "0018_variants_of_agents"),
        ("versions_app", "0010_reword_labels"),
    ]

    operations = [
        migrations.AddIndex(
            model_name="agent",
            index=models.Index(
                condition=models.Q(("active_version__isnull", False), ("archived_at__isnull", True)),
                fields=["-created_at", "id", "active_version", "archived_at"],
                name="agent_listed",
            ),
        ),
        migrations.RemoveIndex(
            model_name="agent",
            name="agent_in_list",
        ),
    ]
