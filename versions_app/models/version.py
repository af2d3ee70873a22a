"""The version of an agent: an immutable snapshot."""

from __future__ import annotations

import json
from functools import cached_property
from typing import Any, ClassVar, TypedDict, Unpack

from django.conf import settings
from django.core.exceptions import ValidationError
from django.db import models, transaction
from django.utils import timezone

from agentcms.ids import uuid7
from agentcms.wire.canonical import canonical, sha256_hex
from agentcms.wire.json_types import JSONObject
from agents_app.configuration import schema
from agents_app.editing.archive_guard import reject_archived
from agents_app.editing.change_context import Source, change, current_change
from agents_app.models import Agent
from agents_app.models.agent import copy_fields
from versions_app.models.activation import CannotUndo
from versions_app.models.version_queryset import BYPASSES_HISTORY_MESSAGE, PUBLISHED_REASON, AgentVersionQuerySet
from versions_app.publishing import move_pointers, publish_refusal_of

# The answer of the API for a version without a message, which its protocol prescribes. It is not stored.
DEFAULT_API_MESSAGE = "Auto-saved after edit"
ACTIVE_VERSION_MESSAGE = "Cannot delete the active version. Activate a different version first."


def get_live_version(agent: Agent) -> AgentVersion:
    """Return the live version. Raise AgentVersion.DoesNotExist for an agent without a history."""
    if agent.active_version is None:
        raise AgentVersion.DoesNotExist(f"Agent {agent.pk} has no live version.")
    return agent.active_version


def get_head_version(agent: Agent) -> AgentVersion:
    """Return the head version. Raise AgentVersion.DoesNotExist for an agent without a history."""
    if agent.head_version is None:
        raise AgentVersion.DoesNotExist(f"Agent {agent.pk} has no head version.")
    return agent.head_version


class DescriptionFields(TypedDict, total=False):
    """The columns of a version that may change."""

    name: str
    change_message: str
    pinned: bool


class AgentVersion(models.Model):
    """An immutable snapshot of an agent. A trigger lets only its name, message and pin change."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    # No index of its own: that of the constraint serves.
    agent = models.ForeignKey(Agent, models.CASCADE, related_name="versions", editable=False, db_index=False)
    version_number = models.PositiveIntegerField(editable=False)
    name = models.CharField(max_length=100, blank=True, default="")
    snapshot_hash = models.CharField(max_length=64, editable=False)
    # Both can be derived from the snapshot. They are stored so that lists need not read snapshots.
    references = models.JSONField(default=dict, editable=False)
    changed_fields = models.JSONField(default=list, editable=False)
    change_message = models.CharField(max_length=500, blank=True, default="")
    pinned = models.BooleanField(default=False, help_text="A pinned version is never pruned.")
    # A number, not a foreign key: retention may delete the version that this one is based on.
    based_on = models.PositiveIntegerField(null=True, editable=False)
    # No index of its own: `version_of_author` serves.
    author = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.SET_NULL, null=True, editable=False, related_name="+", db_index=False
    )
    author_name = models.CharField("author", max_length=150, blank=True, default="", editable=False)
    source = models.CharField(max_length=16, choices=Source, default=Source.CODE, editable=False)
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    # Canonical JSON as text: a read passes it through, and PostgreSQL does not rewrite its numbers. It is the last
    # column, because SQLite reads long values to reach the columns behind them.
    snapshot_text = models.TextField("snapshot", db_column="snapshot", editable=False)

    objects = AgentVersionQuerySet.as_manager()

    class Meta:
        ordering: ClassVar = ["-version_number"]
        verbose_name = "version"
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["agent", "version_number"], name="one_version_per_agent_and_number"),
        ]
        # The list of agents by author reads the index alone.
        indexes: ClassVar = [models.Index(fields=["author", "agent"], name="version_of_author")]

    def __str__(self) -> str:
        return f"{self.agent_id} v{self.version_number}" + (f" ({self.name})" if self.name else "")

    def save(self, **options: Any) -> None:
        if self._state.adding:  # write batches insert what `append()` numbered
            raise TypeError(f"save() {BYPASSES_HISTORY_MESSAGE}")
        super().save(**options)

    @cached_property
    def snapshot(self) -> JSONObject:
        """The configuration under its wire names."""
        snapshot: JSONObject = json.loads(self.snapshot_text)
        return snapshot

    @property
    def custom_message(self) -> str:
        """The message of the change. A process of the previous release still stores the default of the API."""
        return "" if self.change_message == DEFAULT_API_MESSAGE else self.change_message

    # Each method locks the agent's row. Its `_locked` variant takes the row from `get_locked()` of its transaction.

    def activate(self) -> bool:
        """Publish this version. Return whether it was not live.

        Without a draft ahead, it becomes the head too, and the row takes its content. A draft ahead stays.
        """
        with transaction.atomic():
            row = self.locked_agent()
            moved = self.activate_locked(row)
        copy_fields(self.agent, row)
        return moved

    def activate_locked(self, row: Agent) -> bool:
        reject_archived(row)
        if row.active_version_id == self.pk:
            return False
        # Asked for by name: where a gate refuses it, this raises an error instead of leaving a draft.
        with change(publish=True, publishes_by_default=False):
            head = None if row.has_draft else self
            move_pointers(row, head=head, live=self, reason=f"Published v{self.version_number}")
        return True

    def restore(self) -> AgentVersion:
        """Add a copy of this version as the head and, unless the change has `publish=False`, as the live version."""
        with transaction.atomic():
            row = self.locked_agent()
            version = self.restore_locked(row)
        copy_fields(self.agent, row)
        return version

    def restore_locked(self, row: Agent) -> AgentVersion:
        label = f" ({self.name})" if self.name else ""
        message = f"Restored from version {self.version_number}{label}"
        version = AgentVersion.objects.append(
            row, self.snapshot_text, based_on=row.head_version, message=message, source=Source.RESTORE
        )
        move_pointers(row, head=version, live=None if current_change().publish is False else version)
        return version

    def take_back_locked(self, row: Agent) -> AgentVersion:
        """Return the head from this restored draft to the version before it, and return that. Raise CannotUndo."""
        number = self.version_number
        if row.head_version_id != self.pk or not row.has_draft or self.source != Source.RESTORE:
            raise CannotUndo(f"v{number} is no longer the draft. Nothing was changed.", code="moved")
        # No version has the number 0.
        before = row.versions.filter(version_number=self.based_on or 0).first()
        if before is None:
            raise CannotUndo(f"v{self.based_on} was deleted. Discard the draft to return to live.", code="pruned")
        move_pointers(row, head=before)
        return before

    def amend_locked(self, row: Agent, fields: JSONObject) -> AgentVersion | None:
        """Publish a copy of this version with validated fields changed. The head stays. Return it, if it differs."""
        text = canonical(schema.to_snapshot(fields, self.snapshot))
        if sha256_hex(text) == self.snapshot_hash:
            return None
        version = AgentVersion.objects.append(row, text, based_on=self, message="")
        if current_change().may_stay_draft and (reason := publish_refusal_of(row, version)):
            with change(publish=False):  # the draft ahead gets the change
                row.write_locked(fields)
            row.draft_reason = reason
            return row.head_version
        move_pointers(row, live=version, reason=PUBLISHED_REASON)
        return version

    def remove(self) -> None:
        """Delete this version. If it is the head, the head returns to the live one. Raise ValidationError if live."""
        with transaction.atomic():
            row = self.locked_agent()
            self.remove_locked(row)
        copy_fields(self.agent, row)

    def remove_locked(self, row: Agent) -> None:
        reject_archived(row)
        if row.active_version_id == self.pk:
            raise ValidationError(ACTIVE_VERSION_MESSAGE, code="active_version")
        # Before the deletion, which the foreign key of the head would refuse.
        if row.head_version_id == self.pk:
            move_pointers(row, head=row.active_version)
        AgentVersion.objects.filter(pk=self.pk).delete()

    def update_description(self, **fields: Unpack[DescriptionFields]) -> None:
        """Change the name, the message or the pin."""
        with transaction.atomic():
            # Lock first: a concurrent prune may already have selected this version.
            self.update_description_locked(self.locked_agent(), **fields)

    def update_description_locked(self, row: Agent, **fields: Unpack[DescriptionFields]) -> None:
        reject_archived(row)
        AgentVersion.objects.filter(pk=self.pk).update(**fields)
        for name, value in fields.items():
            setattr(self, name, value)

    def locked_agent(self) -> Agent:
        """Lock and return the agent. Raise AgentVersion.DoesNotExist if this version was deleted."""
        row = Agent.objects.get_locked(self.agent_id)
        if not AgentVersion.objects.filter(pk=self.pk).exists():
            raise AgentVersion.DoesNotExist(f"Version {self.version_number} of agent {self.agent_id} is gone.")
        return row
