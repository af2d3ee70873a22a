from django.db import migrations

from agentcms.db.migration_operations import MoveColumnsToEnd


class Migration(migrations.Migration):
    dependencies = [("versions_app", "0008_empty_default_messages")]

    operations = [MoveColumnsToEnd("agentversion", ["snapshot_text"])]
