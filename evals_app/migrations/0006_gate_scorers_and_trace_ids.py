from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("evals_app", "0005_seed_of_experiments"),
    ]

    operations = [
        migrations.AddField(
            model_name="experiment",
            name="gate_scorers",
            field=models.JSONField(editable=False, help_text="Scorers that must give every answer a 1.", null=True),
        ),
        migrations.AddField(
            model_name="experimentresult",
            name="trace_id",
            field=models.CharField(
                blank=True,
                db_default="",
                default="",
                editable=False,
                help_text="Of a submitted result.",
                max_length=200,
            ),
        ),
    ]
