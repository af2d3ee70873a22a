"""An index for the size of the documents of a team, which is limited."""

from django.db import migrations, models

from agentcms.db.migration_operations import AddIndexWithoutLock


class Migration(migrations.Migration):
    atomic = False

    dependencies = [
        ("knowledge_app", "0001_knowledge_bases"),
    ]

    operations = [
        AddIndexWithoutLock(
            model_name="document",
            index=models.Index(fields=["base", "size"], name="document_size_of_base"),
        ),
    ]
