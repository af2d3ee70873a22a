"""Mark the definitions that were accepted so far, so that all agents go on to have them."""

from django.db import migrations


def mark_accepted_definitions(apps, schema_editor):
    servers = apps.get_model("tools_app", "McpServer")
    for server in servers.objects.only("accepted").iterator(chunk_size=20):
        server.accepted = {name: {**value, "acceptedForAll": True} for name, value in server.accepted.items()}
        server.save(update_fields=["accepted"])


class Migration(migrations.Migration):
    dependencies = [("tools_app", "0003_acp_sessions_by_team")]

    operations = [migrations.RunPython(mark_accepted_definitions, migrations.RunPython.noop, elidable=True)]
