from django.db import migrations, models


class Migration(migrations.Migration):
    """Lists leave out archived agents, so the index that they read has the column too."""

    dependencies = [
        ("agents_app", "0009_idempotency_required_role"),
        ("versions_app", "0006_name_the_live_history"),
    ]

    operations = [
        migrations.AddField(
            model_name="agent",
            name="archived_at",
            field=models.DateTimeField(editable=False, null=True),
        ),
        migrations.AddField(
            model_name="agent",
            name="archived_by_name",
            field=models.CharField(blank=True, db_default="", default="", editable=False, max_length=150),
        ),
        migrations.AddIndex(
            model_name="agent",
            index=models.Index(fields=["-created_at", "id", "active_version", "archived_at"], name="agent_in_list"),
        ),
        migrations.RemoveIndex(
            model_name="agent",
            name="agent_listed",
        ),
    ]
