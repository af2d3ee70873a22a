"""The sessions of ACP agents in conversations, and the prompts that were sent."""

from __future__ import annotations

from typing import ClassVar

from django.db import models
from django.utils import timezone

from memory_app.models import Thread
from runs_app.models import AgentRun


class AcpSession(models.Model):
    """The session of an ACP agent in a conversation. Another process continues it if the agent can load sessions.

    Agents of several teams may take part in a conversation. Each team has a session of its own in its own workspace.
    """

    thread = models.ForeignKey(Thread, models.CASCADE, related_name="+")
    agent = models.ForeignKey("tools_app.AcpAgent", models.CASCADE, related_name="sessions")
    # `db_default`: the previous release inserts rows without the column during an upgrade.
    owner_id = models.CharField(max_length=128, blank=True, default="", db_default="")
    version_number = models.PositiveIntegerField()
    session_id = models.CharField(max_length=256)
    updated_at = models.DateTimeField(default=timezone.now)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["thread", "agent", "owner_id"], name="acp_session_of_owner")
        ]

    def __str__(self) -> str:
        return self.session_id


class AcpPrompt(models.Model):
    """A prompt of a child run that was sent to an ACP agent, so that no other process sends it again."""

    run = models.ForeignKey(AgentRun, models.CASCADE, related_name="+")
    number = models.PositiveIntegerField()
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        constraints: ClassVar = [models.UniqueConstraint(fields=["run", "number"], name="acp_prompt_once")]

    def __str__(self) -> str:
        return f"{self.run_id}/{self.number}"
