"""Give existing child runs to the owner of the run that they came from, and store the owner of each agent."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.db import migrations
from django.db.models import F, OuterRef, Q, Subquery

BATCH_SIZE = 1000  # runs in one statement


def fill(apps: Any, schema_editor: Any) -> None:
    AgentRun = apps.get_model("runs_app", "AgentRun")
    parents = AgentRun.objects.filter(pk=OuterRef("parent_id"))
    in_batches(AgentRun.objects.filter(agent_owner_id=None), lambda runs: runs.update(agent_owner_id=F("owner_id")))
    misplaced = AgentRun.objects.filter(~Q(owner_id=F("parent__owner_id")), parent__isnull=False)
    # Each pass reaches one level deeper, because a parent may be a child itself.
    while in_batches(misplaced, lambda runs: runs.update(owner_id=Subquery(parents.values("owner_id")[:1]))):
        pass


def restore(apps: Any, schema_editor: Any) -> None:
    """Give child runs to the owner of their agent again."""
    AgentRun = apps.get_model("runs_app", "AgentRun")
    moved = AgentRun.objects.filter(~Q(owner_id=F("agent_owner_id")), agent_owner_id__isnull=False)
    in_batches(moved, lambda runs: runs.update(owner_id=F("agent_owner_id")))


def in_batches(runs: Any, update: Callable[[Any], int]) -> int:
    """Update runs in order of their keys, a thousand per transaction. Return their number."""
    count, last = 0, None
    while True:
        following = runs.filter(pk__gt=last) if last else runs
        keys = list(following.order_by("pk").values_list("pk", flat=True)[:BATCH_SIZE])
        if not keys:
            return count
        count += update(runs.model.objects.filter(pk__in=keys))
        last = keys[-1]


class Migration(migrations.Migration):
    atomic = False

    dependencies = [
        ("runs_app", "0004_agent_owner"),
    ]

    operations = [migrations.RunPython(fill, restore)]
