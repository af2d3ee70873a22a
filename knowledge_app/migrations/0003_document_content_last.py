from django.db import migrations

from agentcms.db.migration_operations import MoveColumnsToEnd


class Migration(migrations.Migration):
    dependencies = [("knowledge_app", "0002_index_document_sizes")]

    operations = [MoveColumnsToEnd("document", ["sections", "text", "content"])]
