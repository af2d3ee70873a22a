"""Tool calls that wait for a person, and how they were decided."""

from __future__ import annotations

import re
from typing import ClassVar, Self
from uuid import UUID

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils import timezone

from access_app.caller import Caller
from access_app.permissions import has_role, has_role_everywhere, owner_ids_for
from access_app.role import Role
from agentcms.ids import uuid7
from agentcms.wire.canonical import sha256_hex
from agentcms.wire.json_types import JSONValue
from memory_app.models.thread import joined_threads
from memory_app.realms import served_owner
from runs_app.models.run import AgentRun

MAX_CALL_ID_LENGTH = 128  # characters; a longer ID of a tool call is replaced by its hash
REPEATED_SUFFIX = re.compile(r"_r[0-9a-f]{12}-([1-9][0-9]{0,8})\Z")
MAX_SUFFIX_LENGTH = 24  # characters


def stored_call_id(call_id: str) -> str:
    """Return the ID of a tool call as rows of pending calls and keys of steps have it. Long ones are hashed.

    Both must be the same: `Journal.uses_without` counts calls by the keys, and subtracts those of the rows.
    """
    if len(call_id) <= MAX_CALL_ID_LENGTH:
        return call_id
    given, _ = split_call_id(call_id)
    return f"{sha256_hex(given)}{call_id[len(given) :]}"


def repeated_call_id(call_id: str, run_id: UUID, number: int) -> str:
    """Return an ID for a call that is the `number`th of its run to which the model gave this one.

    Every provider accepts the letters of the suffix.
    """
    return f"{call_id}_r{run_id.hex[-12:]}-{number}"


def split_call_id(call_id: str) -> tuple[str, int]:
    """Return the ID that the model gave to a call, and which of the calls with it in the run this is."""
    match = REPEATED_SUFFIX.search(call_id[-MAX_SUFFIX_LENGTH:])
    return (call_id[: -len(match[0])], int(match[1])) if match is not None else (call_id, 1)


def step_call_key(call_id: str) -> str:
    """Return a tool call in the keys of steps. The previous release numbered repeated IDs there in the same way."""
    given, number = split_call_id(stored_call_id(call_id))
    return given if number == 1 else f"{given}/{number}"


class PendingCallQuerySet(models.QuerySet["PendingCall"]):
    def waiting(self) -> Self:
        """Filter to the calls that nobody has decided."""
        return self.filter(state=PendingCall.State.OPEN)

    def readable_by(self, user: Caller) -> Self:
        """Filter to the calls that a user may read, without those that wait for child runs: nobody decides these."""
        return self.for_user(user).exclude(kind=PendingCall.Kind.CHILD)

    def for_user(self, user: Caller) -> Self:
        """Filter to the calls of the runs that a user may read: their own, and those of owners they may publish for.

        It follows `AgentRun.objects.for_user()`, but needs no run, because these rows outlive it. Former members see
        no calls: they show how an agent works.
        """
        if (served := served_owner(user)) is not None:
            return self._of_end_users(user, served)
        if has_role_everywhere(user, Role.PUBLISHER):
            return self
        if not (user.is_authenticated and user.is_active):
            return self.none()
        own = Q(requested_by=user.pk) & (Q(realm_owner=None) | Q(run__thread__in=joined_threads(user)))
        if not has_role_everywhere(user, Role.VIEWER):
            own &= Q(owner_id__in=owner_ids_for(user))
        return self.filter(own | Q(owner_id__in=owner_ids_for(user, Role.PUBLISHER)))

    def _of_end_users(self, user: Caller, owner_id: str) -> Self:
        """Filter to the calls that the API key of a user asked for in the realm of an owner's end users."""
        if not has_role(user, Role.EDITOR, owner_id):
            return self.none()
        calls = self.filter(requested_by=user.pk, realm_owner=owner_id)
        return calls if has_role_everywhere(user, Role.VIEWER) else calls.filter(owner_id__in=owner_ids_for(user))

    def decidable_by(self, user: Caller) -> Self:
        """Filter to the waiting calls that a user may decide."""
        waiting = self.for_user(user).waiting().exclude(kind=PendingCall.Kind.CHILD)
        if user.is_authenticated:
            waiting = waiting.exclude(four_eyes=True, requested_by=user.pk)
        role_suffices = Q(pk=None)
        for role in (Role.EDITOR, Role.PUBLISHER, Role.MANAGER):
            if has_role_everywhere(user, role):
                role_suffices |= Q(role=role)
            else:
                role_suffices |= Q(role=role, owner_id__in=owner_ids_for(user, role))
        return waiting.filter(role_suffices)


class PendingCall(models.Model):
    """A tool call that waits for a person, for a child run that waits for one, or for a background task.

    The row outlives its run, because people ask years later who let a call happen.
    """

    class Kind(models.TextChoices):
        APPROVAL = "approval", "Approval"
        SUSPEND = "suspend", "Question"  # the tool has suspended itself and waits for data
        CHILD = "child", "Sub-agent"  # or a background task: nobody decides the call itself

    class State(models.TextChoices):
        OPEN = "open", "Waiting"
        APPROVED = "approved", "Approved"
        DECLINED = "declined", "Declined"
        RESUMED = "resumed", "Answered"
        EXPIRED = "expired", "Expired"
        CANCELLED = "cancelled", "Cancelled"

    class Via(models.TextChoices):
        """The place at which a call was decided."""

        PAGE = "page", "Page"
        API = "api", "API"
        MESSAGE = "message", "Message"
        EXPIRY = "expiry", "Expiry"

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    # Without a constraint: `run_id` keeps its value when the run is deleted.
    run = models.ForeignKey(
        AgentRun, models.DO_NOTHING, null=True, db_constraint=False, editable=False, related_name="pending_calls"
    )
    root_id = models.UUIDField(
        "first run ID", editable=False, help_text="The run that a person or a program asked for."
    )
    segment = models.PositiveIntegerField(editable=False)
    call_id = models.CharField("call ID", max_length=192, editable=False)
    agent_key = models.CharField("agent ID", max_length=256, editable=False)
    owner_id = models.CharField("team", max_length=128, blank=True, default="", editable=False)
    requested_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.SET_NULL, null=True, editable=False, related_name="+"
    )
    requested_by_name = models.CharField("requested by", max_length=150, blank=True, default="", editable=False)
    realm_owner = models.CharField(
        max_length=128, null=True, editable=False, help_text="The owner whose end users asked. Null for users."
    )
    resource_digest = models.CharField(
        max_length=64, blank=True, default="", db_default="", editable=False, help_text="The hash of the resource."
    )

    tool = models.CharField(max_length=128, editable=False, help_text="The name of the tool, as the model sees it.")
    arguments = models.JSONField(default=dict, editable=False)
    arguments_schema = models.JSONField(null=True, editable=False, help_text="JSON Schema of the arguments.")
    kind = models.CharField(max_length=16, choices=Kind, editable=False)
    payload = models.JSONField(null=True, editable=False, help_text="What a tool says that has suspended itself.")
    resume_schema = models.JSONField(null=True, editable=False, help_text="JSON Schema of the data that it waits for.")
    mark = models.CharField(max_length=16, blank=True, editable=False, help_text="A hash of the tool and arguments.")
    role = models.CharField(max_length=16, default=Role.EDITOR, editable=False, help_text="The least role to decide.")
    four_eyes = models.BooleanField(
        default=False, editable=False, help_text="Whoever asked for the run may not decide."
    )

    state = models.CharField(max_length=16, choices=State, default=State.OPEN, editable=False)
    decided_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.SET_NULL, null=True, editable=False, related_name="+"
    )
    decided_by_name = models.CharField("decided by", max_length=150, blank=True, default="", editable=False)
    decided_at = models.DateTimeField(null=True, editable=False)
    via = models.CharField(max_length=16, choices=Via, blank=True, default="", editable=False)
    reason = models.TextField(blank=True, default="", editable=False)
    edited_arguments = models.JSONField(null=True, editable=False)
    resume_data = models.JSONField(null=True, editable=False)
    # Of the message or the other request that decided the call, if it had an idempotency key: a repeat finds the call.
    message_key = models.UUIDField(null=True, editable=False)
    message_digest = models.CharField(max_length=64, blank=True, default="", db_default="", editable=False)
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    expires_at = models.DateTimeField(null=True, editable=False)

    objects = PendingCallQuerySet.as_manager()

    class Meta:
        verbose_name = "approval"
        ordering: ClassVar = ["created_at", "id"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["run", "segment", "call_id"], name="one_pending_call_per_call")
        ]
        indexes: ClassVar = [
            models.Index(fields=["root_id"], name="pending_call_root"),
            models.Index(fields=["created_at"], name="pending_call_open", condition=Q(state="open")),
            models.Index(fields=["message_key"], name="pending_call_message", condition=Q(message_key__isnull=False)),
            models.Index(fields=["resource_digest"], name="pending_call_resource"),
        ]

    def __str__(self) -> str:
        return f"{self.tool} ({self.get_state_display().lower()})"

    @property
    def is_open(self) -> bool:
        return self.state == self.State.OPEN

    @property
    def current_arguments(self) -> JSONValue:
        """The arguments with which the call is executed: those of the model, unless a person has changed them."""
        return self.arguments if self.edited_arguments is None else self.edited_arguments
