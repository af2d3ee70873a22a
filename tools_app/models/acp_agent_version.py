"""The history of ACP agents."""

from __future__ import annotations

from typing import ClassVar

from django.db import models

from tools_app.models.versioned import ConfigurationVersion


class AcpAgentVersion(ConfigurationVersion):
    """A copy of the configuration of an ACP agent, without the values of its environment."""

    agent = models.ForeignKey("tools_app.AcpAgent", models.CASCADE, related_name="versions")

    class Meta(ConfigurationVersion.Meta):
        verbose_name = "version of an ACP agent"
        verbose_name_plural = "versions of ACP agents"
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["agent", "version_number"], name="acp_version_number"),
        ]
