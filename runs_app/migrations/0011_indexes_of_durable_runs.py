from django.db import migrations, models

from agentcms.db.migration_operations import AddIndexWithoutLock, RemoveIndexWithoutLock


class Migration(migrations.Migration):
    atomic = False

    dependencies = [
        ("runs_app", "0010_durable_runs"),
    ]

    operations = [
        AddIndexWithoutLock(
            model_name="agentrun",
            index=models.Index(
                condition=models.Q(("finished_at", None), ("suspended_at", None)),
                fields=["status", "lease_until"],
                name="run_leased",
            ),
        ),
        AddIndexWithoutLock(
            model_name="agentrun",
            index=models.Index(
                condition=models.Q(("suspended_at__isnull", False)), fields=["suspended_at"], name="run_suspended"
            ),
        ),
        AddIndexWithoutLock(
            model_name="agentrun",
            index=models.Index(fields=["root_id"], name="run_root"),
        ),
        RemoveIndexWithoutLock(model_name="agentrun", name="run_open"),
    ]
