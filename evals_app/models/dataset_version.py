"""Versions of datasets: who changed the items, when and how many."""

from __future__ import annotations

from typing import ClassVar

from django.conf import settings
from django.db import models
from django.utils import timezone

from agentcms.ids import uuid7
from evals_app.models.dataset import Dataset


class DatasetVersion(models.Model):
    """A change of the items of a dataset: one item, a batch or an import."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    dataset = models.ForeignKey(Dataset, models.CASCADE, related_name="versions", editable=False)
    version = models.PositiveIntegerField(editable=False)
    author = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="+", editable=False)
    # The account may be deleted; the history still says who it was.
    author_name = models.CharField(max_length=150, blank=True, default="", editable=False)
    source = models.CharField(max_length=16, blank=True, default="", editable=False)
    added = models.PositiveIntegerField(default=0, editable=False)
    changed = models.PositiveIntegerField(default=0, editable=False)
    deleted = models.PositiveIntegerField(default=0, editable=False)
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    class Meta:
        ordering: ClassVar = ["-version"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["dataset", "version"], name="one_row_per_dataset_version")
        ]

    def __str__(self) -> str:
        return f"{self.dataset_id} v{self.version}"
