from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("evals_app", "0006_gate_scorers_and_trace_ids"),
    ]

    operations = [
        migrations.AlterField(
            model_name="releasegate",
            name="statistic",
            field=models.CharField(
                choices=[
                    ("mean", "Mean"),
                    ("pass_rate", "Pass rate"),
                    ("min", "Lowest score"),
                    ("difference_to_live", "Difference to live"),
                ],
                default="mean",
                max_length=24,
            ),
        ),
    ]
