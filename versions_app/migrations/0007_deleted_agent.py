import django.db.models.deletion
import django.utils.timezone
from django.conf import settings
from django.db import migrations, models

import agentcms.ids


class Migration(migrations.Migration):
    dependencies = [
        ("versions_app", "0006_name_the_live_history"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="DeletedAgent",
            fields=[
                (
                    "id",
                    models.UUIDField(default=agentcms.ids.uuid7, editable=False, primary_key=True, serialize=False),
                ),
                ("agent_key", models.CharField(editable=False, max_length=128, verbose_name="agent ID")),
                ("name", models.CharField(editable=False, max_length=200)),
                (
                    "owner_id",
                    models.CharField(blank=True, default="", editable=False, max_length=128, verbose_name="owner"),
                ),
                ("live_version_number", models.PositiveIntegerField(editable=False, null=True)),
                ("version_count", models.PositiveIntegerField(editable=False)),
                ("deleted_at", models.DateTimeField(default=django.utils.timezone.now, editable=False)),
                ("deleted_by_name", models.CharField(blank=True, default="", editable=False, max_length=150)),
                ("record", models.BinaryField()),
                (
                    "deleted_by",
                    models.ForeignKey(
                        editable=False,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "verbose_name": "deleted agent",
                "ordering": ["-deleted_at", "-id"],
                "indexes": [
                    models.Index(fields=["owner_id", "-deleted_at"], name="deleted_of_owner"),
                    models.Index(fields=["deleted_at"], name="deleted_at"),
                ],
            },
        ),
    ]
