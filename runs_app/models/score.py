"""Scores of answers."""

from __future__ import annotations

from typing import ClassVar

from django.db import models
from django.utils import timezone

from agents_app.models import Agent
from runs_app.models.run import AgentRun


class Score(models.Model):
    """The result of a scorer for an answer: a number from 0 to 1, or an error."""

    run = models.ForeignKey(AgentRun, models.CASCADE, related_name="scores", editable=False)
    scorer = models.CharField(max_length=256, editable=False)
    score = models.FloatField(null=True, editable=False)
    error = models.TextField(blank=True, default="", editable=False)
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    class Meta:
        ordering: ClassVar = ["run_id", "scorer"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["run", "scorer"], name="one_score_per_run_and_scorer")
        ]

    def __str__(self) -> str:
        return f"{self.scorer}: {self.score if self.error == '' else self.error}"


class ScorerCount(models.Model):
    """The number of answers of an agent that a scorer with count sampling has received."""

    agent = models.ForeignKey(Agent, models.CASCADE, related_name="+", editable=False)
    scorer = models.CharField(max_length=256, editable=False)
    seen = models.PositiveBigIntegerField(default=0, editable=False)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["agent", "scorer"], name="one_count_per_agent_and_scorer")
        ]

    def __str__(self) -> str:
        return f"{self.scorer} of {self.agent_id}: {self.seen}"
