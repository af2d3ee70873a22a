"""The rule of an owner for the contents of traces."""

from __future__ import annotations

from typing import ClassVar

from django.db import models

from access_app.models import printable_id


class TraceRule(models.Model):
    """Keep the texts of an owner's runs out of traces, although TRACE_CONTENT lets them in."""

    owner_id = models.CharField(
        "team",
        max_length=128,
        blank=True,
        unique=True,
        validators=[printable_id],
        help_text="Leave blank for Shared.",
    )
    allows_content = models.BooleanField(
        "contents in traces",
        default=False,
        help_text="Only with TRACE_CONTENT. Without it, traces contain no messages or results.",
    )

    class Meta:
        ordering: ClassVar = ["owner_id"]

    def __str__(self) -> str:
        return f"Trace rule of {self.owner_id or 'Shared'}"
