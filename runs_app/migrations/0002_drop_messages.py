from django.db import migrations


class Migration(migrations.Migration):
    """Nothing ever wrote the column: what a run said and was told is in its events."""

    dependencies = [("runs_app", "0001_runs")]

    operations = [migrations.RemoveField("agentrun", "messages")]
