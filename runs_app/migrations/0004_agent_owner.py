from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("runs_app", "0003_reword_labels"),
    ]

    operations = [
        migrations.AddField(
            model_name="agentrun",
            name="agent_owner_id",
            field=models.CharField(editable=False, max_length=128, null=True, verbose_name="owner of the agent"),
        ),
    ]
