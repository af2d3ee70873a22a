"""Records of resources whose data was deleted on request."""

from __future__ import annotations

from typing import ClassVar

from django.db import models
from django.utils import timezone


class Forgotten(models.Model):
    """A resource whose data was deleted. After a backup is restored, its data can be deleted again."""

    digest = models.CharField(max_length=64, unique=True, editable=False, help_text="SHA-256 of realm and resource.")
    forgotten_at = models.DateTimeField(default=timezone.now, editable=False)
    forgotten_by = models.CharField(max_length=150, blank=True, default="", editable=False)

    class Meta:
        verbose_name = "forgotten resource"
        ordering: ClassVar = ["-forgotten_at"]

    def __str__(self) -> str:
        return self.digest[:12]
