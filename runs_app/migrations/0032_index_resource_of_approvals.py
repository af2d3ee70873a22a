"""An index for the resource of calls that waited for people, by which the data of a person is found."""

from django.db import migrations, models

from agentcms.db.migration_operations import AddIndexWithoutLock


class Migration(migrations.Migration):
    atomic = False

    dependencies = [
        ("runs_app", "0031_fill_resource_of_approvals"),
    ]

    operations = [
        AddIndexWithoutLock(
            model_name="pendingcall",
            index=models.Index(fields=["resource_digest"], name="pending_call_resource"),
        ),
    ]
