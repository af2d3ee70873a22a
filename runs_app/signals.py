"""What a save sets off here."""

from __future__ import annotations

from typing import Any

from django.db.models.signals import post_delete, post_save, pre_delete
from django.dispatch import receiver

from agents_app.models import Agent
from runs_app.models import AgentRun, ModelProvider
from runs_app.providers import table


@receiver([post_save, post_delete], sender=ModelProvider)
def invalidate_providers(**said: Any) -> None:
    """Let this process believe a change of the providers at once; the others do within a second."""
    table.invalidate()


@receiver(pre_delete, sender=Agent)
def lock_unfinished_runs(instance: Agent, **said: Any) -> None:
    """Keep whoever carries a run of the agent from adding events while it is deleted with its runs."""
    list(AgentRun.objects.filter(agent=instance).unfinished().order_by("pk").select_for_update().values_list("pk"))
