"""The use of agents per day."""

from __future__ import annotations

from typing import ClassVar, Self

from django.db import models

from access_app.caller import Caller
from access_app.permissions import has_role_everywhere, owner_ids_for
from access_app.role import Role
from agents_app.models import Agent


class DailyUsageQuerySet(models.QuerySet["DailyUsage"]):
    def for_user(self, user: Caller) -> Self:
        """Filter to the figures of runs that a user may read because of a role, as `AgentRunQuerySet.for_user()`."""
        if has_role_everywhere(user, Role.PUBLISHER):
            return self
        return self.filter(owner_id__in=owner_ids_for(user, Role.PUBLISHER))


class DailyUsage(models.Model):
    """The figures of the runs of a version of an agent that ended on one day (UTC), for one owner of runs.

    `runs_app.usage.daily_rollup` writes them. They stay when the runs are deleted, and are deleted with the agent.
    """

    # No index of its own: that of the constraint serves.
    agent = models.ForeignKey(Agent, models.CASCADE, related_name="+", editable=False, db_index=False)
    owner_id = models.CharField("owner of the runs", max_length=128, blank=True, default="", editable=False)
    version_number = models.PositiveIntegerField(editable=False, help_text="0 for unsaved text.")
    day = models.DateField(editable=False)
    runs = models.PositiveIntegerField(editable=False)
    errors = models.PositiveIntegerField(editable=False)
    tokens = models.PositiveBigIntegerField(editable=False)
    cost = models.DecimalField("cost in US dollars", max_digits=18, decimal_places=8, null=True, editable=False)
    durations = models.JSONField(editable=False, help_text="The number of runs by bucket of the histogram.")
    scores = models.JSONField(editable=False, help_text="By scorer: the number of scores, and their sum.")

    objects = DailyUsageQuerySet.as_manager()

    class Meta:
        verbose_name = "use per day"
        verbose_name_plural = "use per day"
        ordering: ClassVar = ["agent", "day", "version_number", "owner_id"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["agent", "day", "version_number", "owner_id"], name="one_usage_per_day")
        ]
        indexes: ClassVar = [models.Index(fields=["day"], name="usage_day")]

    def __str__(self) -> str:
        return f"{self.agent_id} v{self.version_number} on {self.day}: {self.runs}"
