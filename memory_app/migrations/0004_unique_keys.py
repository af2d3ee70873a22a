from django.db import migrations, models

from agentcms.db.migration_operations import AddIndexWithoutLock


class Migration(migrations.Migration):
    atomic = False

    dependencies = [
        ("memory_app", "0003_fill_realms"),
    ]

    operations = [
        AddIndexWithoutLock(
            model_name="thread",
            index=models.Index(fields=["resource", "-updated_at"], name="thread_of_resource"),
        ),
        AddIndexWithoutLock(
            model_name="message",
            index=models.Index(fields=["key"], name="message_key"),
        ),
        migrations.AddConstraint(
            model_name="thread",
            constraint=models.UniqueConstraint(fields=("realm", "key"), name="one_thread_per_realm_and_key"),
        ),
        migrations.AddConstraint(
            model_name="message",
            constraint=models.UniqueConstraint(fields=("thread", "key"), name="one_message_per_thread_and_key"),
        ),
    ]
