"""An index for the filter of agents by the authors of their versions."""

from django.db import migrations, models

from agentcms.db.migration_operations import AddIndexWithoutLock


class Migration(migrations.Migration):
    atomic = False

    dependencies = [
        ("versions_app", "0010_reword_labels"),
    ]

    operations = [
        AddIndexWithoutLock(
            model_name="agentversion",
            index=models.Index(fields=["author", "agent"], name="version_of_author"),
        ),
    ]
