"""An index for the threads of a resource, which requests name by realm and ID."""

from django.db import migrations, models

from agentcms.db.migration_operations import AddIndexWithoutLock


class Migration(migrations.Migration):
    atomic = False

    dependencies = [
        ("memory_app", "0009_forgetting"),
    ]

    operations = [
        AddIndexWithoutLock(
            model_name="thread",
            index=models.Index(fields=["realm", "resource_key", "-updated_at"], name="thread_of_resource_key"),
        ),
    ]
