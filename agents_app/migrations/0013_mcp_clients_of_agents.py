from django.db import migrations, models


class Migration(migrations.Migration):
    """Agents name the tools of MCP servers. Code of the previous release neither reads nor writes the column."""

    dependencies = [
        ("agents_app", "0012_durable_agents"),
    ]

    operations = [
        migrations.AddField(
            model_name="agent",
            name="mcp_clients",
            field=models.JSONField(
                blank=True,
                help_text='{"server": {"tools": {"tool": {"requireApproval": true}}}}',
                null=True,
                verbose_name="MCP tools",
            ),
        ),
    ]
