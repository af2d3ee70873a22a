"""The history of ACP agents."""

from __future__ import annotations

from typing import ClassVar

from django.db import models
from django.utils import timezone

from agents_app.editing.change_context import Source


class AcpAgentVersion(models.Model):
    """A copy of the configuration of an ACP agent, without the values of its environment."""

    agent = models.ForeignKey("tools_app.AcpAgent", models.CASCADE, related_name="versions")
    version_number = models.PositiveIntegerField()
    snapshot = models.JSONField()
    author_name = models.CharField(max_length=150, blank=True, default="")
    source = models.CharField(max_length=16, choices=Source, default=Source.CODE)
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        verbose_name = "version of an ACP agent"
        verbose_name_plural = "versions of ACP agents"
        ordering: ClassVar = ["-version_number"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["agent", "version_number"], name="acp_version_number"),
        ]

    def __str__(self) -> str:
        return f"v{self.version_number}"
