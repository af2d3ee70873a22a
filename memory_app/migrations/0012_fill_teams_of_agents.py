"""Store the present team of the agent of each thread. For agents that moved earlier, nothing says the team before."""

from __future__ import annotations

from typing import Any

from django.db import migrations, transaction
from django.db.models import OuterRef, Subquery

BATCH_SIZE = 1000  # rows per transaction


def fill(apps: Any, schema_editor: Any) -> None:
    Thread = apps.get_model("memory_app", "Thread")
    owners = apps.get_model("agents_app", "Agent").objects.filter(pk=OuterRef("agent_id")).values("owner_id")
    unfilled = (
        Thread.objects.filter(agent_owner_id=None, agent__isnull=False).order_by("pk").values_list("pk", flat=True)
    )
    while batch := [*unfilled[:BATCH_SIZE]]:
        with transaction.atomic():
            Thread.objects.filter(pk__in=batch).update(agent_owner_id=Subquery(owners))


class Migration(migrations.Migration):
    atomic = False

    dependencies = [("memory_app", "0011_teams_of_agents_of_threads")]

    operations = [migrations.RunPython(fill, migrations.RunPython.noop)]
