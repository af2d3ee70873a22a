import django.db.models.deletion
from django.db import migrations, models


def to_agent(related_name):
    return models.ForeignKey(
        db_index=False,
        editable=False,
        on_delete=django.db.models.deletion.CASCADE,
        related_name=related_name,
        to="agents_app.agent",
    )


class Migration(migrations.Migration):
    """What the database has is dropped there, with that of the agents."""

    dependencies = [("agents_app", "0007_fewer_indexes"), ("versions_app", "0003_activation_of_version")]

    operations = [
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.AlterField("activation", "agent", to_agent("activations")),
                migrations.AlterField("agentversion", "agent", to_agent("versions")),
            ],
        ),
    ]
