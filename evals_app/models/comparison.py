"""Comparisons of two experiments, kept because their statistics take long."""

from __future__ import annotations

from typing import ClassVar

from django.db import models
from django.utils import timezone

from evals_app.models.experiment import Experiment


class Comparison(models.Model):
    """The statistics of two experiments. A job computes them once both have ended."""

    class State(models.TextChoices):
        PENDING = "pending", "Pending"
        DONE = "done", "Done"
        FAILED = "failed", "Failed"

    baseline = models.ForeignKey(Experiment, models.CASCADE, related_name="+", editable=False)
    candidate = models.ForeignKey(Experiment, models.CASCADE, related_name="+", editable=False)
    state = models.CharField(max_length=8, choices=State, default=State.PENDING, editable=False)
    statistics = models.JSONField(null=True, editable=False)
    basis = models.CharField(
        max_length=64, blank=True, default="", editable=False, help_text="A hash of the results that were compared."
    )
    job_id = models.UUIDField(null=True, editable=False, help_text="The job that computes the statistics.")
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    class Meta:
        ordering: ClassVar = ["-id"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["baseline", "candidate"], name="one_comparison_per_pair")
        ]

    def __str__(self) -> str:
        return f"{self.baseline_id} and {self.candidate_id}"
