"""An index for the runs of an agent, which lists find by its ID as it was when they started."""

from django.db import migrations, models

from agentcms.db.migration_operations import AddIndexWithoutLock


class Migration(migrations.Migration):
    atomic = False

    dependencies = [
        ("runs_app", "0039_claims_of_approval_notices"),
    ]

    operations = [
        AddIndexWithoutLock(
            model_name="agentrun", index=models.Index(fields=["agent_key", "-created_at"], name="run_of_agent_key")
        ),
    ]
