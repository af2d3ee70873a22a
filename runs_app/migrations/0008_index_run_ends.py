from django.db import migrations, models

from agentcms.db.migration_operations import AddIndexWithoutLock


class Migration(migrations.Migration):
    atomic = False

    dependencies = [
        ("runs_app", "0007_daily_usage"),
    ]

    operations = [
        AddIndexWithoutLock(
            model_name="agentrun",
            index=models.Index(
                condition=models.Q(("finished_at__isnull", False)),
                fields=["agent", "finished_at"],
                name="run_end_of_agent",
            ),
        ),
    ]
