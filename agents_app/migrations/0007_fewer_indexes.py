import django.db.models.deletion
from django.db import migrations, models

# What `db_index` made and another index does as well; each edit wrote to all of them.
NEEDLESS = [
    ("agents_app_agent", "owner_id"),
    ("agents_app_agentindex", "agent_id"),
    ("versions_app_agentversion", "agent_id"),
    ("versions_app_activation", "agent_id"),
]


def drop(apps, schema_editor):
    """By name, because altering the columns would make SQLite rebuild the tables, and lose their triggers."""
    connection = schema_editor.connection
    for table, column in NEEDLESS:
        with connection.cursor() as cursor:
            found = connection.introspection.get_constraints(cursor, table)
        for name, each in found.items():
            if each["index"] and each["columns"] == [column] and not (each["unique"] or each["primary_key"]):
                schema_editor.execute(f"DROP INDEX {schema_editor.quote_name(name)}")


def make(apps, schema_editor):
    for table, column in NEEDLESS:
        name = schema_editor.quote_name(f"{table}_{column}_index")
        schema_editor.execute(f"CREATE INDEX {name} ON {schema_editor.quote_name(table)} ({column})")


class Migration(migrations.Migration):
    dependencies = [("agents_app", "0006_agent_listed"), ("versions_app", "0003_activation_of_version")]

    operations = [
        migrations.RunPython(drop, make),
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.AlterField(
                    "agent", "owner_id", models.CharField("owner", blank=True, default="", max_length=128)
                ),
                migrations.AlterField(
                    "agentindex",
                    "agent",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="index",
                        to="agents_app.agent",
                    ),
                ),
            ],
        ),
        migrations.AddIndex("agent", models.Index(fields=["owner_id"], name="agent_owner")),
        migrations.AddIndex("agentindex", models.Index(fields=["agent"], name="agent_index_agent")),
    ]
