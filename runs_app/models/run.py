"""Runs as rows: what an agent was asked, as which version, and every event of its answer.

The one who runs appends events; everybody else reads them. A stream is a view of these rows.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any, ClassVar, Self

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils import timezone

from access_app.permissions import has_role, has_role_everywhere, owner_ids_for
from access_app.role import Role
from agentcms.ids import uuid7
from agents_app.models import Agent
from runs_app.models.thread import Thread

LEASE = timedelta(seconds=15)  # a process that says nothing of its runs for so long has died


class AgentRunQuerySet(models.QuerySet["AgentRun"]):
    def for_user(self, user: Any) -> Self:
        """The runs that a caller may read: those asked for, and those of owners that the caller publishes for."""
        if has_role_everywhere(user, Role.PUBLISHER):
            return self
        if not (user.is_authenticated and user.is_active):
            return self.none()
        return self.filter(Q(requested_by=user) | Q(owner_id__in=owner_ids_for(user, Role.PUBLISHER)))

    def without_texts(self) -> Self:
        """Without what may be large: a list shows none of it."""
        return self.defer("configuration", "input", "output", "warnings")

    def open(self) -> Self:
        """Those that are not over."""
        return self.filter(status__in=AgentRun.OPEN)

    def lost(self) -> Self:
        """Those whose process has died."""
        return self.filter(status__in=AgentRun.HELD, lease_until__lt=timezone.now())


class AgentRun(models.Model):
    """One answer of one agent, pinned to the version it began with."""

    class Status(models.TextChoices):
        QUEUED = "queued", "Queued"
        RUNNING = "running", "Running"
        SUSPENDED = "suspended", "Waiting for approval"
        SUCCEEDED = "succeeded", "Succeeded"
        FAILED = "failed", "Failed"
        CANCELLED = "cancelled", "Stopped"

    class Target(models.TextChoices):
        """What of the agent ran."""

        LIVE = "live", "Live"
        DRAFT = "draft", "Draft"
        VERSION = "version", "Version"
        UNSAVED = "unsaved", "Unsaved text"
        CODE = "code", "Code"

    HELD: ClassVar = (Status.QUEUED, Status.RUNNING)  # some process holds it
    OPEN: ClassVar = (*HELD, Status.SUSPENDED)

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    # An agent that lives in code has no row; its key is what it is called by.
    agent = models.ForeignKey(Agent, models.CASCADE, null=True, editable=False, related_name="runs")
    agent_key = models.CharField("agent id", max_length=256, editable=False)
    owner_id = models.CharField("owner", max_length=128, blank=True, default="", editable=False)
    parent = models.ForeignKey("self", models.CASCADE, null=True, editable=False, related_name="children")
    parent_call_id = models.CharField(max_length=128, blank=True, default="", editable=False)

    # Plain values: what ran is known after the version was pruned.
    target = models.CharField(max_length=16, choices=Target, default=Target.LIVE, editable=False)
    version_id = models.UUIDField(null=True, editable=False)
    version_number = models.PositiveIntegerField(null=True, editable=False)
    configuration = models.JSONField(editable=False, help_text="Under wire names, as a snapshot has it.")

    requested_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.SET_NULL, null=True, editable=False, related_name="runs"
    )
    requested_by_name = models.CharField(max_length=150, blank=True, default="", editable=False)
    input = models.JSONField(editable=False, help_text="The messages, and the options of this call.")
    thread = models.ForeignKey(Thread, models.SET_NULL, null=True, editable=False, related_name="runs")

    status = models.CharField(max_length=16, choices=Status, default=Status.QUEUED, editable=False)
    output = models.TextField(blank=True, default="", editable=False)
    finish_reason = models.CharField(max_length=32, blank=True, default="", editable=False)
    usage = models.JSONField(default=dict, editable=False, help_text="Tokens: inputTokens, outputTokens, totalTokens.")
    cost = models.DecimalField("cost in US dollars", max_digits=14, decimal_places=8, null=True, editable=False)
    warnings = models.JSONField(default=list, editable=False)
    error = models.TextField(blank=True, default="", editable=False)
    is_demo = models.BooleanField(default=False, editable=False, help_text="Whether the built-in model answered.")

    last_event_number = models.PositiveIntegerField(default=0, editable=False)
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    started_at = models.DateTimeField(null=True, editable=False)
    first_text_at = models.DateTimeField(null=True, editable=False)
    finished_at = models.DateTimeField(null=True, editable=False)
    cancel_requested_at = models.DateTimeField(null=True, editable=False)
    lease_until = models.DateTimeField(null=True, editable=False)
    holder = models.CharField(max_length=64, blank=True, default="", editable=False)

    objects = AgentRunQuerySet.as_manager()

    class Meta:
        verbose_name = "run"
        ordering: ClassVar = ["-created_at", "-id"]
        indexes: ClassVar = [
            models.Index(fields=["agent", "-created_at"], name="run_of_agent"),
            models.Index(fields=["requested_by", "-created_at"], name="run_of_user"),
            models.Index(fields=["owner_id", "-created_at"], name="run_of_owner"),
            # Every process asks for its own open runs twice a second.
            models.Index(fields=["status", "lease_until"], name="run_open", condition=Q(finished_at=None)),
            models.Index(fields=["finished_at"], name="run_finished"),
        ]

    def __str__(self) -> str:
        return f"{self.agent_key} {self.shown_version} ({self.get_status_display().lower()})"

    @property
    def shown_version(self) -> str:
        """What ran, as people say it: `v7`, or `unsaved text`."""
        return f"v{self.version_number}" if self.version_number else self.get_target_display().lower()

    @property
    def channel(self) -> str:
        """Where Valkey says that there are new events."""
        return f"agent.stream.{self.pk}"

    def shows_agent_to(self, user: Any) -> bool:
        """Whether a reader may know what the agent was told: who asked through another agent, or left, may not."""
        return self.target == self.Target.CODE or has_role(user, Role.VIEWER, self.owner_id)

    @property
    def is_over(self) -> bool:
        return self.status not in self.OPEN

    @property
    def duration(self) -> timedelta | None:
        """From its start to its end, or to now."""
        return (self.finished_at or timezone.now()) - self.started_at if self.started_at else None
