"""Named workspaces of teams, which ACP agents use in place of a folder for each conversation."""

from __future__ import annotations

from typing import ClassVar

from django.core.validators import RegexValidator
from django.db import models
from django.utils import timezone

from access_app.role import SHARED_LABEL


class AcpWorkspace(models.Model):
    """A folder that superusers gave to a team. All conversations of the team share it."""

    owner_id = models.CharField("team", max_length=128, blank=True, help_text="The team whose agents work in it.")
    name = models.CharField(
        max_length=64,
        validators=[RegexValidator(r"^[a-z0-9][a-z0-9_-]*\Z", "Use lowercase letters, digits, '-' and '_'.")],
    )
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    class Meta:
        verbose_name = "workspace of ACP agents"
        verbose_name_plural = "workspaces of ACP agents"
        ordering: ClassVar = ["owner_id", "name"]
        constraints: ClassVar = [models.UniqueConstraint(fields=["owner_id", "name"], name="acp_workspace_name")]

    def __str__(self) -> str:
        return f"{self.owner_id or SHARED_LABEL}: {self.name}"
