from django.db import migrations, models

from agentcms.db.migration_operations import AddIndexWithoutLock


class Migration(migrations.Migration):
    atomic = False

    dependencies = [
        ("memory_app", "0005_vectors"),
    ]

    operations = [
        migrations.AddField(
            model_name="message",
            name="delivery",
            field=models.JSONField(editable=False, null=True),
        ),
        migrations.AddField(
            model_name="message",
            name="seen_by",
            field=models.UUIDField(
                editable=False,
                help_text="The run whose model was given this signal. Empty for one that waits.",
                null=True,
            ),
        ),
        migrations.AlterField(
            model_name="message",
            name="role",
            field=models.CharField(
                blank=True,
                choices=[
                    ("user", "User"),
                    ("assistant", "Assistant"),
                    ("tool", "Tool results"),
                    ("signal", "Signal"),
                ],
                db_default="",
                default="",
                editable=False,
                max_length=16,
            ),
        ),
        AddIndexWithoutLock(
            model_name="message",
            index=models.Index(
                condition=models.Q(("role", "signal")), fields=["thread", "seen_by"], name="signal_of_thread"
            ),
        ),
    ]
