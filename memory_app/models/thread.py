"""Conversations that are stored for the memory of agents."""

from __future__ import annotations

from typing import ClassVar

from django.conf import settings
from django.db import models
from django.utils import timezone

from agents_app.models import Agent


class Thread(models.Model):
    """One conversation of one user with one agent."""

    key = models.CharField("thread ID", max_length=256, editable=False, help_text="Chosen by the API client.")
    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="threads", editable=False)
    agent = models.ForeignKey(Agent, models.CASCADE, null=True, related_name="threads", editable=False)
    agent_key = models.CharField("agent ID", max_length=256, editable=False)
    resource = models.CharField(max_length=256, blank=True, default="", editable=False)
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    updated_at = models.DateTimeField(default=timezone.now, editable=False)

    class Meta:
        db_table = "runs_app_thread"
        ordering: ClassVar = ["-updated_at"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["user", "agent_key", "key"], name="one_thread_per_user_agent_and_key")
        ]
        indexes: ClassVar = [models.Index(fields=["updated_at"], name="thread_updated")]

    def __str__(self) -> str:
        return f"{self.key} with {self.agent_key}"
