from django.db import migrations, models


def forget_sessions(apps, schema_editor):
    """Delete sessions and permissions whose team is not known. Agents begin new sessions, and ask again."""
    apps.get_model("tools_app", "AcpSession").objects.all().delete()
    apps.get_model("tools_app", "AcpPermission").objects.all().delete()


class Migration(migrations.Migration):
    dependencies = [
        ("memory_app", "0008_observations"),
        ("tools_app", "0002_acp_agents"),
    ]

    operations = [
        migrations.RunPython(forget_sessions, migrations.RunPython.noop),
        migrations.RemoveConstraint(model_name="acppermission", name="acp_permission_of_thread"),
        migrations.RemoveConstraint(model_name="acpsession", name="acp_session_of_thread"),
        migrations.AddField(
            model_name="acppermission",
            name="owner_id",
            field=models.CharField(blank=True, db_default="", default="", max_length=128, verbose_name="team"),
        ),
        migrations.AddField(
            model_name="acpsession",
            name="owner_id",
            field=models.CharField(blank=True, db_default="", default="", max_length=128),
        ),
        migrations.AddConstraint(
            model_name="acppermission",
            constraint=models.UniqueConstraint(
                fields=("thread", "agent", "owner_id", "mark"), name="acp_permission_of_owner"
            ),
        ),
        migrations.AddConstraint(
            model_name="acpsession",
            constraint=models.UniqueConstraint(fields=("thread", "agent", "owner_id"), name="acp_session_of_owner"),
        ),
        # Backwards it comes first: those of two teams would break the constraints of a conversation.
        migrations.RunPython(migrations.RunPython.noop, forget_sessions),
    ]
