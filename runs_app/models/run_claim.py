"""The claims of durable runs by processes, after the first one of each run."""

from __future__ import annotations

from typing import ClassVar

from django.db import models
from django.utils import timezone

from runs_app.models.run import AgentRun


class RunClaim(models.Model):
    """A process that continued a durable run: after a decision, or after another process had stopped."""

    id = models.BigAutoField(primary_key=True)
    run = models.ForeignKey(AgentRun, models.CASCADE, related_name="claims", editable=False)
    segment = models.PositiveIntegerField(editable=False)
    holder = models.CharField(
        max_length=64, editable=False, help_text="The process: host, process ID and a random part."
    )
    claimed_at = models.DateTimeField(default=timezone.now, editable=False)

    class Meta:
        verbose_name = "claim of a run"
        ordering: ClassVar = ["run_id", "id"]

    def __str__(self) -> str:
        return f"{self.holder} in segment {self.segment}"

    @property
    def process_name(self) -> str:
        """The host and the process ID."""
        host, _, rest = self.holder.partition(":")
        return f"{host}, process {rest.partition(':')[0]}" if rest else host
