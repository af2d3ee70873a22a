"""The steps of a durable run: each request to the model, tool call and read of the memory, with its result."""

from __future__ import annotations

from typing import ClassVar

from django.db import models
from django.utils import timezone

from agentcms.db.json_encoder import CompactEncoder
from runs_app.models.run import AgentRun


class RunStep(models.Model):
    """One step of a durable run. A process that continues the run uses the results of finished steps.

    The key contains no name of an agent, model or tool, so renaming one does not affect unfinished runs.
    """

    class Kind(models.TextChoices):
        MODEL = "model", "Request to the model"
        TOOL = "tool", "Tool call"
        CAPABILITY = "capability", "Memory or processor"
        OTHER = "other", "Other"

    class State(models.TextChoices):
        STARTED = "started", "Started"
        DONE = "done", "Done"

    pk = models.CompositePrimaryKey("run_id", "key")  # the table of PostgreSQL is partitioned by day of the run
    run = models.ForeignKey(AgentRun, models.CASCADE, related_name="steps", db_index=False, editable=False)
    key = models.CharField(max_length=192, editable=False, help_text="Unique in the run, such as 0/m/1.")
    kind = models.CharField(max_length=16, choices=Kind, editable=False)
    name = models.CharField(max_length=128, blank=True, editable=False, help_text="The tool or the model, for people.")
    state = models.CharField(max_length=8, choices=State, editable=False)
    mark = models.CharField(max_length=16, blank=True, editable=False, help_text="A hash of the input of the step.")
    attempts = models.PositiveIntegerField(default=1, editable=False)
    result = models.JSONField(encoder=CompactEncoder, null=True, editable=False)
    started_at = models.DateTimeField(default=timezone.now, editable=False)
    finished_at = models.DateTimeField(null=True, editable=False)

    class Meta:
        verbose_name = "step"
        ordering: ClassVar = ["run_id", "started_at", "key"]

    def __str__(self) -> str:
        return f"{self.key} {self.name}".strip()
