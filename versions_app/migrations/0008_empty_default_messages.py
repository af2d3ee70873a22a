from django.apps.registry import Apps
from django.db import migrations
from django.db.backends.base.schema import BaseDatabaseSchemaEditor

DEFAULT_MESSAGE = "Auto-saved after edit"


def empty_messages(apps: Apps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    versions = apps.get_model("versions_app", "AgentVersion").objects
    versions.filter(change_message=DEFAULT_MESSAGE).update(change_message="")


def store_messages(apps: Apps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    versions = apps.get_model("versions_app", "AgentVersion").objects
    versions.filter(change_message="").update(change_message=DEFAULT_MESSAGE)


class Migration(migrations.Migration):
    """Versions saved without a message have an empty one: pages show the summary of the change instead."""

    dependencies = [
        ("versions_app", "0007_deleted_agent"),
    ]

    operations = [
        migrations.RunPython(empty_messages, store_messages),
    ]
