"""Messages that users save in the playground of an agent."""

from __future__ import annotations

import json
from typing import ClassVar

from django.conf import settings
from django.db import models
from django.utils import timezone

from agents_app.models import Agent


class SavedInput(models.Model):
    """A message with the values of the variables that a user saved in the playground of an agent."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="saved_inputs")
    agent = models.ForeignKey(Agent, models.CASCADE, related_name="saved_inputs")
    name = models.CharField(max_length=100)
    text = models.TextField()
    variables = models.JSONField(null=True, blank=True, help_text="The texts of the variables by name.")
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    class Meta:
        ordering: ClassVar = ["name"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["user", "agent", "name"], name="one_input_per_user_agent_and_name")
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def variables_json(self) -> str:
        """The texts of the variables as JSON, for the script of the page."""
        # Sorted, because PostgreSQL does not keep the order of JSON keys.
        return json.dumps(self.variables or {}, ensure_ascii=False, sort_keys=True)
