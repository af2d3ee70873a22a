"""Runs: the input, the version that ran, and the output.

Only the process that executes a run appends its events. All other processes read the rows.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any, ClassVar

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils import timezone

from access_app.caller import Caller
from access_app.permissions import granted_covers
from access_app.role import Role
from agentcms.db.json_encoder import CompactEncoder
from agentcms.ids import uuid7
from agentcms.wire.json_types import JSONMapping, JSONObject
from agents_app.configuration.variants import known_values
from agents_app.models import Agent
from memory_app.models import Resource, Thread
from runs_app.models.run_configuration import RunConfiguration, load_configuration, save_configuration
from runs_app.models.run_queryset import AgentRunQuerySet

LEASE_DURATION = timedelta(seconds=15)  # a run whose lease is not renewed for this long is lost
DURABLE_LEASE_DURATION = timedelta(seconds=6)  # of a durable run; then another process continues it
MAX_PARENT_CALL_ID = 128  # characters of the ID of the call that started a child run; the rest is cut off


class AgentRun(models.Model):
    """One execution of an agent, pinned to the version with which it started."""

    class Status(models.TextChoices):
        QUEUED = "queued", "Queued"
        RUNNING = "running", "Running"
        SUSPENDED = "suspended", "Waiting for approval"
        SUCCEEDED = "succeeded", "Succeeded"
        FAILED = "failed", "Failed"
        CANCELLED = "cancelled", "Stopped"

    class Target(models.TextChoices):
        """The configuration of the agent that ran."""

        LIVE = "live", "Live"
        DRAFT = "draft", "Draft"
        VERSION = "version", "Version"
        UNSAVED = "unsaved", "Unsaved text"
        CODE = "code", "Code"

    LEASED_STATUSES: ClassVar = (Status.QUEUED, Status.RUNNING)  # a process holds the lease
    UNFINISHED_STATUSES: ClassVar = (*LEASED_STATUSES, Status.SUSPENDED)

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    # Null for agents that are defined in code.
    agent = models.ForeignKey(Agent, models.CASCADE, null=True, editable=False, related_name="runs")
    agent_key = models.CharField("agent ID", max_length=256, editable=False)
    # A child run belongs to the owner of its parent. Its agent may belong to another owner.
    owner_id = models.CharField("team", max_length=128, blank=True, default="", editable=False)
    # Null in rows of the previous release.
    agent_owner_id = models.CharField("team of the agent", max_length=128, null=True, editable=False)
    parent = models.ForeignKey("self", models.CASCADE, null=True, editable=False, related_name="children")
    parent_call_id = models.CharField(max_length=MAX_PARENT_CALL_ID, blank=True, default="", editable=False)

    # Not foreign keys: the values outlive the version, which may be pruned.
    target = models.CharField(max_length=16, choices=Target, default=Target.LIVE, editable=False)
    version_id = models.UUIDField(null=True, editable=False)
    version_number = models.PositiveIntegerField(null=True, editable=False)
    # Use `configuration`. The column has the configurations of the previous release, which its processes still write.
    stored_configuration = models.JSONField(
        db_column="configuration", default=dict, editable=False, help_text="Of the previous release."
    )
    shared_configuration = models.ForeignKey(
        RunConfiguration, models.PROTECT, null=True, db_index=False, editable=False, related_name="runs"
    )

    requested_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.SET_NULL, null=True, editable=False, related_name="runs"
    )
    requested_by_name = models.CharField("requested by", max_length=150, blank=True, default="", editable=False)
    input = models.JSONField(editable=False, help_text="The messages and options of this run.")
    thread = models.ForeignKey(Thread, models.SET_NULL, null=True, editable=False, related_name="runs")
    realm_owner = models.CharField(
        max_length=128, null=True, editable=False, help_text="The owner whose end users asked. Null for users."
    )
    # Whose memory the run uses. Null without memory.
    resource = models.ForeignKey(Resource, models.SET_NULL, null=True, editable=False, related_name="runs")

    status = models.CharField(max_length=16, choices=Status, default=Status.QUEUED, editable=False)
    output = models.TextField(blank=True, default="", editable=False)
    finish_reason = models.CharField(max_length=32, blank=True, default="", editable=False)
    usage = models.JSONField(default=dict, editable=False, help_text="Tokens: inputTokens, outputTokens, totalTokens.")
    cost = models.DecimalField("cost in US dollars", max_digits=14, decimal_places=8, null=True, editable=False)
    warnings = models.JSONField(default=list, editable=False)
    # By part of the memory, such as `recall`. IDs and scores of messages, whose texts may be deleted earlier.
    remembered = models.JSONField(null=True, editable=False, help_text="The memory that the model was given.")
    error = models.TextField(blank=True, default="", editable=False)
    is_demo = models.BooleanField(
        "demo model", default=False, editable=False, help_text="The built-in demo model answered."
    )

    last_event_number = models.PositiveIntegerField(default=0, editable=False)
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    started_at = models.DateTimeField(null=True, editable=False)
    first_text_at = models.DateTimeField(null=True, editable=False)
    finished_at = models.DateTimeField(null=True, editable=False)
    cancel_requested_at = models.DateTimeField(null=True, editable=False)
    lease_until = models.DateTimeField(null=True, editable=False)
    holder = models.CharField(max_length=64, blank=True, default="", editable=False)

    # A durable run continues in another process when its own stops.
    is_durable = models.BooleanField("durable", default=False, db_default=False, editable=False)
    # The first run of its tree of runs. Null in rows of the previous release.
    root_id = models.UUIDField(null=True, editable=False)
    fence = models.PositiveIntegerField(
        default=0, db_default=0, editable=False, help_text="The number of claims. Each write names the latest."
    )
    segment = models.PositiveIntegerField(
        default=0, db_default=0, editable=False, help_text="The number of times that the run has waited for people."
    )
    attempts = models.PositiveIntegerField(
        default=0, db_default=0, editable=False, help_text="Processes lost since the last finished step."
    )
    worked_ms = models.PositiveBigIntegerField(
        "worked for (ms)", default=0, db_default=0, editable=False, help_text="Before the current process took it."
    )
    traceparent = models.CharField(
        max_length=55, blank=True, default="", db_default="", editable=False, help_text="The span that started it."
    )
    suspended_at = models.DateTimeField(null=True, editable=False)
    expires_at = models.DateTimeField(null=True, editable=False, help_text="When a waiting call of the run expires.")
    conversation = models.JSONField(
        encoder=CompactEncoder,
        null=True,
        editable=False,
        help_text="Messages, usage and number of steps of the earlier segments.",
    )

    idempotency_id = models.UUIDField(null=True, editable=False, help_text="Of the user and the Idempotency-Key.")
    experiment_id = models.UUIDField(null=True, editable=False, help_text="The experiment that started the run.")

    _configuration: JSONObject | None = None  # once it was read or set

    granted: str | None  # the role for the owner of the run, from `with_roles()`
    granted_for_agent: str | None  # the role for the owner of the agent, from `with_roles()`

    objects = AgentRunQuerySet.as_manager()

    class Meta:
        verbose_name = "run"
        ordering: ClassVar = ["-created_at", "-id"]
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["idempotency_id"],
                name="one_run_per_idempotency_key",
                condition=Q(idempotency_id__isnull=False),
            )
        ]
        indexes: ClassVar = [
            models.Index(fields=["agent", "-created_at"], name="run_of_agent"),
            # By the ID as it was at the start: lists have the runs of deleted agents and of agents in code too.
            models.Index(fields=["agent_key", "-created_at"], name="run_of_agent_key"),
            models.Index(fields=["requested_by", "-created_at"], name="run_of_user"),
            models.Index(fields=["owner_id", "-created_at"], name="run_of_owner"),
            # The list of runs: its late pages read the index alone.
            models.Index(fields=["-created_at", "-id"], name="run_newest", condition=Q(parent__isnull=True)),
            # Every process reads its unfinished runs twice a second. Those that wait for people may be many.
            models.Index(
                fields=["status", "lease_until"],
                name="run_leased",
                condition=Q(finished_at=None, suspended_at=None),
            ),
            models.Index(
                fields=["requested_by", "suspended_at"],
                name="run_suspended",
                condition=Q(suspended_at__isnull=False),
            ),
            models.Index(fields=["expires_at"], name="run_expiry", condition=Q(suspended_at__isnull=False)),
            models.Index(
                fields=["created_at"],
                name="run_queued",
                condition=Q(status="queued", is_durable=True, finished_at=None, suspended_at=None),
            ),
            models.Index(fields=["root_id"], name="run_root"),
            models.Index(fields=["experiment_id"], name="run_of_experiment", condition=Q(experiment_id__isnull=False)),
            models.Index(fields=["finished_at"], name="run_finished"),
            models.Index(fields=["shared_configuration"], name="run_of_configuration"),
            # The figures of the days that are not rolled up yet.
            models.Index(
                fields=["agent", "finished_at"], name="run_end_of_agent", condition=Q(finished_at__isnull=False)
            ),
        ]

    def __str__(self) -> str:
        return f"{self.agent_key} {self.version_label} ({self.get_status_display().lower()})"

    def save(self, *args: Any, **kwargs: Any) -> None:
        if self._state.adding and self._configuration:
            self.shared_configuration_id = save_configuration(self._configuration)
        super().save(*args, **kwargs)

    @property
    def configuration(self) -> JSONObject:
        """The snapshot of the version, under wire names. Runs with an equal one share a row."""
        return self.read_configuration()

    @configuration.setter
    def configuration(self, value: JSONMapping) -> None:
        if not self._state.adding:
            raise AttributeError("The configuration of a saved run cannot be changed. Create a new run with it.")
        self._configuration = dict(value)

    def read_configuration(self) -> JSONObject:
        """Return the configuration, read from the database unless it was read before."""
        if self._configuration is None:
            key = self.shared_configuration_id
            self._configuration = self.stored_configuration if key is None else load_configuration(key)
        return self._configuration

    @property
    def version_label(self) -> str:
        """The version that ran: `v7` or `unsaved text`."""
        return f"v{self.version_number}" if self.version_number else self.get_target_display().lower()

    @property
    def request_context(self) -> JSONObject:
        """The values of the variables that the caller sent, without reserved ones."""
        values: JSONObject = self.input.get("requestContext") or {}
        return values

    @property
    def facts(self) -> JSONObject:
        """The facts about the caller, which come from the credentials."""
        values: JSONObject = self.input.get("facts") or {}
        return values

    @property
    def context_with_facts(self) -> JSONObject:
        """The request context as the agent and its tools know it.

        Facts come from the credentials, and replace what a caller claims under the same name.
        """
        return known_values(self.request_context, self.facts)

    @property
    def filled_instructions(self) -> str:
        """The instructions that the model got, with the variables filled."""
        text: str = self.input.get("instructions", self.configuration.get("instructions")) or ""
        return text

    def details_visible_to(self, user: Caller) -> bool:
        """Return whether a user may see more than the question and the answer.

        Former members may still read their own runs. The run must come from a queryset `with_roles`.
        """
        return granted_covers(user, Role.VIEWER, self.granted)

    def configuration_visible_to(self, user: Caller) -> bool:
        """Return whether a user may see the configuration. The run must come from a queryset `with_roles`."""
        if not self.details_visible_to(user):
            return False
        # Agents in code are visible to all users.
        return self.target == self.Target.CODE or granted_covers(user, Role.VIEWER, self.granted_for_agent)

    @property
    def is_finished(self) -> bool:
        return self.status not in self.UNFINISHED_STATUSES

    @property
    def duration(self) -> timedelta | None:
        """The time from the start to the end, or to now."""
        return (self.finished_at or timezone.now()) - self.started_at if self.started_at else None
