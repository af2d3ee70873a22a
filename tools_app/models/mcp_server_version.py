"""The history of MCP servers."""

from __future__ import annotations

from typing import ClassVar

from django.db import models
from django.utils import timezone

from agents_app.editing.change_context import Source


class McpServerVersion(models.Model):
    """A copy of the configuration of an MCP server, without the values of its headers."""

    server = models.ForeignKey("tools_app.McpServer", models.CASCADE, related_name="versions")
    version_number = models.PositiveIntegerField()
    snapshot = models.JSONField()
    author_name = models.CharField(max_length=150, blank=True, default="")
    source = models.CharField(max_length=16, choices=Source, default=Source.CODE)
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        verbose_name = "version of an MCP server"
        verbose_name_plural = "versions of MCP servers"
        ordering: ClassVar = ["-version_number"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["server", "version_number"], name="mcp_version_number"),
        ]

    def __str__(self) -> str:
        return f"v{self.version_number}"
