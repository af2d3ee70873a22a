"""JSON of new rows without spaces. The tables do not change."""

from django.db import migrations, models

from agentcms.db.json_encoder import CompactEncoder


class Migration(migrations.Migration):
    dependencies = [
        ("runs_app", "0028_partitions"),
    ]

    operations = [
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.AlterField(
                    model_name="agentrun",
                    name="conversation",
                    field=models.JSONField(
                        editable=False,
                        encoder=CompactEncoder,
                        help_text="Messages, usage and number of steps of the earlier segments.",
                        null=True,
                    ),
                ),
                migrations.AlterField(
                    model_name="runevent",
                    name="data",
                    field=models.JSONField(editable=False, encoder=CompactEncoder),
                ),
                migrations.AlterField(
                    model_name="runstep",
                    name="result",
                    field=models.JSONField(editable=False, encoder=CompactEncoder, null=True),
                ),
            ],
        ),
    ]
