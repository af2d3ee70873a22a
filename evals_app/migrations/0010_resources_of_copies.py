"""Columns and indexes for the resource of whose runs items and results are copies, which outlive the runs."""

from django.db import migrations, models

from agentcms.db.migration_operations import AddIndexWithoutLock


class Migration(migrations.Migration):
    atomic = False

    dependencies = [
        ("evals_app", "0009_spending_of_earlier_attempts"),
    ]

    operations = [
        migrations.AddField(
            model_name="itemversion",
            name="resource_digest",
            field=models.CharField(
                blank=True,
                db_default="",
                default="",
                editable=False,
                help_text="The hash of the resource whose run it was made of.",
                max_length=64,
            ),
        ),
        migrations.AddField(
            model_name="experimentresult",
            name="resource_digest",
            field=models.CharField(
                blank=True,
                db_default="",
                default="",
                editable=False,
                help_text="The hash of the run's resource.",
                max_length=64,
            ),
        ),
        AddIndexWithoutLock(
            model_name="itemversion",
            index=models.Index(fields=["resource_digest"], name="item_version_of_resource"),
        ),
        AddIndexWithoutLock(
            model_name="experimentresult",
            index=models.Index(fields=["resource_digest"], name="result_of_resource"),
        ),
        AddIndexWithoutLock(
            model_name="experimentresult",
            index=models.Index(
                condition=models.Q(("run_key__isnull", False)), fields=["run_key"], name="result_of_run"
            ),
        ),
    ]
