"""Scores of answers."""

from __future__ import annotations

from typing import ClassVar

from django.conf import settings
from django.db import models
from django.utils import timezone

from agents_app.models import Agent
from runs_app.models.run import AgentRun


class Score(models.Model):
    """A score of an answer by a scorer or a person: a number, or an error, or neither if it cannot be scored."""

    class Source(models.TextChoices):
        LIVE = "LIVE", "Live"
        TEST = "TEST", "Test"
        PERSON = "PERSON", "Person"

    run = models.ForeignKey(AgentRun, models.CASCADE, related_name="scores", editable=False)
    scorer = models.CharField(max_length=256, editable=False)
    score = models.FloatField(null=True, editable=False)
    error = models.TextField(blank=True, default="", editable=False)
    reason = models.TextField(blank=True, default="", db_default="", editable=False)
    details = models.JSONField(default=dict, db_default=models.Value({}, models.JSONField()), editable=False)
    label = models.CharField(max_length=64, blank=True, default="", db_default="", editable=False)
    scorer_version = models.PositiveIntegerField(null=True, editable=False)
    source = models.CharField(max_length=8, choices=Source, default=Source.LIVE, db_default="LIVE", editable=False)
    result = models.JSONField(null=True, editable=False, help_text="What a caller sent with the score.")
    usage = models.JSONField(default=dict, db_default=models.Value({}, models.JSONField()), editable=False)
    cost = models.DecimalField("cost in US dollars", max_digits=14, decimal_places=8, null=True, editable=False)
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.SET_NULL, null=True, editable=False, related_name="+"
    )
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    class Meta:
        ordering: ClassVar = ["run_id", "scorer"]
        constraints: ClassVar = [
            # The job of the scorers may be repeated. People and callers of the API may score an answer again.
            models.UniqueConstraint(
                fields=["run", "scorer"], condition=models.Q(source="LIVE"), name="one_live_score_per_scorer"
            )
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
