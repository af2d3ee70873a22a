"""The retention rule of an owner."""

from __future__ import annotations

from typing import ClassVar

from django.core.validators import MinValueValidator
from django.db import models

from access_app.models import printable_id

MIN_VERSIONS = 5


class RetentionRule(models.Model):
    """The limits of an owner, in place of the settings.

    A save never removes more than the rule allows. The nightly job applies a rule that is stricter than the settings,
    so that a save does not look for one.
    """

    owner_id = models.CharField(
        "owner",
        max_length=128,
        blank=True,
        unique=True,
        validators=[printable_id],
        help_text="Blank is the shared space.",
    )
    versions = models.PositiveIntegerField(
        "versions kept",
        null=True,
        blank=True,
        validators=[MinValueValidator(MIN_VERSIONS)],
        help_text="Per agent. Blank is AGENT_VERSION_LIMIT.",
    )
    days = models.PositiveIntegerField(
        "days kept",
        null=True,
        blank=True,
        validators=[MinValueValidator(1)],
        help_text="Older versions go every night. Blank is AGENT_VERSION_DAYS.",
    )

    class Meta:
        ordering: ClassVar = ["owner_id"]

    def __str__(self) -> str:
        return f"Retention of {self.owner_id or 'the shared space'}"
