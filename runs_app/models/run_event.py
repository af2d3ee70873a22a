"""The numbered events of a run."""

from __future__ import annotations

from typing import ClassVar

from django.db import models
from django.utils import timezone

from agentcms.db.json_encoder import CompactEncoder
from runs_app.models.run import AgentRun


class RunEvent(models.Model):
    """One event of a run. `data` is the chunk in wire format: `{"type": …, "payload": {…}}`."""

    class Type(models.TextChoices):
        CHUNK = "chunk", "Chunk"
        STEP_START = "step-start", "Step started"
        STEP_FINISH = "step-finish", "Step finished"
        TOOL_CALL = "tool-call", "Tool call"
        TOOL_RESULT = "tool-result", "Tool result"
        FINISH = "finish", "Finished"
        ERROR = "error", "Error"
        SUSPENDED = "suspended", "Suspended"

    pk = models.CompositePrimaryKey("run_id", "number")  # the table of PostgreSQL is partitioned by day of the run
    run = models.ForeignKey(AgentRun, models.CASCADE, related_name="events", db_index=False, editable=False)
    number = models.PositiveIntegerField(editable=False)  # 1, 2, 3 … within a run; also the event id of the stream
    type = models.CharField(max_length=16, choices=Type, editable=False)
    data = models.JSONField(encoder=CompactEncoder, editable=False)
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    class Meta:
        ordering: ClassVar = ["run_id", "number"]

    def __str__(self) -> str:
        return f"{self.number} {self.type}"
