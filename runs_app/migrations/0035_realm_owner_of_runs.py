"""The owner whose end users asked for a run, which users outside of that realm do not read."""

from django.db import migrations, models

REALM_OWNER = {"max_length": 128, "null": True, "editable": False}
HELP = "The owner whose end users asked. Null for users."


class Migration(migrations.Migration):
    dependencies = [
        ("runs_app", "0034_long_call_ids"),
    ]

    operations = [
        migrations.AddField(
            model_name="agentrun",
            name="realm_owner",
            field=models.CharField(help_text=HELP, **REALM_OWNER),
        ),
        migrations.AddField(
            model_name="pendingcall",
            name="realm_owner",
            field=models.CharField(help_text=HELP, **REALM_OWNER),
        ),
    ]
