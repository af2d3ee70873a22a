"""The history of MCP servers."""

from __future__ import annotations

from typing import ClassVar

from django.db import models

from tools_app.models.versioned import ConfigurationVersion


class McpServerVersion(ConfigurationVersion):
    """A copy of the configuration of an MCP server, without the values of its headers."""

    server = models.ForeignKey("tools_app.McpServer", models.CASCADE, related_name="versions")

    class Meta(ConfigurationVersion.Meta):
        verbose_name = "version of an MCP server"
        verbose_name_plural = "versions of MCP servers"
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["server", "version_number"], name="mcp_version_number"),
        ]
