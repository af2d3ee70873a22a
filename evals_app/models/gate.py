"""Release gates: what a version must reach in an experiment before it goes live."""

from __future__ import annotations

from typing import ClassVar

from django.conf import settings
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.utils import timezone

from agentcms.ids import uuid7
from agents_app.models import Agent
from evals_app.models.dataset import Dataset


class ReleaseGate(models.Model):
    """A bar for the versions of an agent, or of all agents of a team."""

    class Statistic(models.TextChoices):
        MEAN = "mean", "Mean"
        PASS_RATE = "pass_rate", "Pass rate"
        MIN = "min", "Lowest score"
        DIFFERENCE = "difference_to_live", "Difference to live"

    class Mode(models.TextChoices):
        ENFORCE = "enforce", "Enforce"
        WARN = "warn", "Warn"

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    agent = models.ForeignKey(Agent, models.CASCADE, null=True, blank=True, related_name="gates")
    # Stored with the gate, because a gate for all agents of a team has no agent.
    owner_id = models.CharField("team", max_length=128, blank=True, default="")
    # An agent whose dataset was deleted could go live without a test.
    dataset = models.ForeignKey(Dataset, models.PROTECT, related_name="gates")
    dataset_version = models.PositiveIntegerField(null=True, blank=True, help_text="Blank: the current one.")
    scorer = models.CharField(max_length=256)
    statistic = models.CharField(max_length=24, choices=Statistic, default=Statistic.MEAN)
    minimum = models.FloatField(null=True, blank=True)
    maximum = models.FloatField(null=True, blank=True)
    max_failed = models.PositiveIntegerField("failed items allowed", default=0)
    max_age_days = models.PositiveIntegerField(
        "oldest experiment in days",
        null=True,
        blank=True,
        validators=[MinValueValidator(1), MaxValueValidator(36_500)],
    )
    mode = models.CharField(max_length=8, choices=Mode, default=Mode.ENFORCE)
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.SET_NULL, null=True, editable=False, related_name="+"
    )
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    updated_at = models.DateTimeField(default=timezone.now, editable=False)

    class Meta:
        verbose_name = "release gate"
        ordering: ClassVar = ["created_at", "id"]
        indexes: ClassVar = [models.Index(fields=["owner_id"], name="gate_of_owner")]

    def __str__(self) -> str:
        return f"{self.scorer} over {self.dataset_id}"
