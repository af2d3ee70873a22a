"""An index for the list of runs, newest first."""

from django.db import migrations, models

from agentcms.db.migration_operations import AddIndexWithoutLock


class Migration(migrations.Migration):
    atomic = False

    dependencies = [
        ("runs_app", "0037_reword_labels"),
    ]

    operations = [
        AddIndexWithoutLock(
            model_name="agentrun",
            index=models.Index(
                fields=["-created_at", "-id"], name="run_newest", condition=models.Q(parent__isnull=True)
            ),
        ),
    ]
