"""The retention rule of an owner."""

from __future__ import annotations

from typing import ClassVar

from django.core.validators import MinValueValidator
from django.db import models

from access_app.models import printable_id
from access_app.role import SHARED_LABEL

MIN_VERSIONS = 5


class RetentionRule(models.Model):
    """The limits of an owner, in place of the settings.

    A save never removes more than the rule allows. The nightly job applies a rule that is stricter than the settings,
    so that a save does not look for one.
    """

    owner_id = models.CharField(
        "team",
        max_length=128,
        blank=True,
        unique=True,
        validators=[printable_id],
        help_text="Leave blank for Shared.",
    )
    versions = models.PositiveIntegerField(
        "max versions",
        null=True,
        blank=True,
        validators=[MinValueValidator(MIN_VERSIONS)],
        help_text="Per agent. The default is AGENT_VERSION_LIMIT.",
    )
    days = models.PositiveIntegerField(
        "max age in days",
        null=True,
        blank=True,
        validators=[MinValueValidator(1)],
        help_text="Older versions are removed every night. The default is AGENT_VERSION_DAYS.",
    )

    class Meta:
        ordering: ClassVar = ["owner_id"]

    def __str__(self) -> str:
        return f"Retention rule of {self.owner_id or SHARED_LABEL}"
