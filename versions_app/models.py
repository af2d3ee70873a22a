"""The history of an agent: its versions, and what was live when."""

from __future__ import annotations

import json
from collections.abc import Iterable
from functools import cached_property
from typing import Any, ClassVar

from django.conf import settings
from django.core.exceptions import ValidationError
from django.db import models, transaction
from django.utils import timezone

from agentcms.ids import uuid7
from agentcms.wire import canonical, digest
from agents_app import shapes
from agents_app.changes import Source, current
from agents_app.models import Agent
from agents_app.references import references
from versions_app.diffs import changed_fields
from versions_app.retention import delete_surplus

CREATED = "Created"
EDITED = "Auto-saved after edit"
SNAPSHOT = "Saved by hand"
POINTERS = ("active_version", "head_version", "last_version_number", "revision", "updated_at")


class AgentVersionQuerySet(models.QuerySet["AgentVersion"]):
    def record(self, agent: Agent) -> AgentVersion | None:
        """Keep the agent's row as a version, if it differs from its head.

        The row is read again under a lock: the object in hand may be stale, and may have saved only part of itself.
        """
        with transaction.atomic():
            row = Agent.objects.locked(agent.pk)
            head, text = row.head_version, row.snapshot_text
            version = None
            if head is None or digest(text) != head.snapshot_hash:
                version = self.append(row, text, based_on=head, message=EDITED if head else CREATED)
                move(row, head=version, live=version if goes_live(row) else None)
                version.save(force_insert=True)
        show(agent, row, POINTERS)
        return version

    def snapshot(self, agent: Agent, pinned: bool = False) -> AgentVersion:
        """A version by hand, equal to the head, under the name and message of the change; it does not go live."""
        with transaction.atomic():
            row = Agent.objects.locked(agent.pk)
            version = self.append(row, row.snapshot_text, based_on=row.head_version, message=SNAPSHOT)
            version.pinned = pinned
            move(row, head=version)
            version.save(force_insert=True)
        show(agent, row, POINTERS)
        return version

    def discard_draft(self, agent: Agent) -> bool:
        """Return the head to what is live; whether there was a draft to discard. Its versions stay in the history."""
        with transaction.atomic():
            row = Agent.objects.locked(agent.pk)
            discarded = row.head_version_id != row.active_version_id
            if discarded:
                move(row, head=row.active_version)
        show(agent, row)
        return discarded

    def append(
        self, row: Agent, text: str, *, based_on: AgentVersion | None, message: str, source: str = ""
    ) -> AgentVersion:
        """The next version of a locked row, not saved yet. Every number is handed out here."""
        said = current()
        row.last_version_number += 1
        version = AgentVersion(
            agent=row,
            version_number=row.last_version_number,
            name=said.name,
            snapshot_text=text,
            snapshot_hash=digest(text),
            change_message=said.message or message,
            based_on=based_on.version_number if based_on else None,
            source=source or said.source,
            **author(),
        )
        version.references = references(version.snapshot)
        version.changed_fields = changed_fields(based_on.snapshot if based_on else {}, version.snapshot)
        return version

    def prune(self, agent: Agent) -> int:
        """Delete the oldest versions over the limit that nothing spares; returns how many."""
        if agent.last_version_number <= settings.AGENT_VERSION_LIMIT:  # numbers are never reused
            return 0
        return delete_surplus([agent.pk], settings.AGENT_VERSION_LIMIT)


class AgentVersion(models.Model):
    """An immutable picture of an agent. Only its name, message and pin may change; the database refuses the rest."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    agent = models.ForeignKey(Agent, models.CASCADE, related_name="versions", editable=False)
    version_number = models.PositiveIntegerField(editable=False)
    name = models.CharField(max_length=100, blank=True, default="")
    # Canonical JSON as text, so that a read passes it through and PostgreSQL respells nothing.
    snapshot_text = models.TextField("snapshot", db_column="snapshot", editable=False)
    snapshot_hash = models.CharField(max_length=64, editable=False)
    references = models.JSONField(default=dict, editable=False)
    changed_fields = models.JSONField(default=list, editable=False)
    change_message = models.CharField(max_length=500, blank=True, default="")
    pinned = models.BooleanField(default=False, help_text="A pinned version is never pruned.")
    based_on = models.PositiveIntegerField(null=True, editable=False)
    author = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True, editable=False, related_name="+")
    author_name = models.CharField(max_length=150, blank=True, default="", editable=False)
    source = models.CharField(max_length=16, choices=Source, default=Source.CODE, editable=False)
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    objects = AgentVersionQuerySet.as_manager()

    class Meta:
        ordering: ClassVar = ["-version_number"]
        verbose_name = "version"
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["agent", "version_number"], name="one_version_per_agent_and_number"),
        ]

    def __str__(self) -> str:
        return f"{self.agent_id} v{self.version_number}" + (f" ({self.name})" if self.name else "")

    @cached_property
    def snapshot(self) -> dict[str, Any]:
        """The configuration under its wire names."""
        picture: dict[str, Any] = json.loads(self.snapshot_text)
        return picture

    def activate(self) -> bool:
        """Make this version live; whether that moved anything.

        Without a draft ahead the head follows and the row becomes this picture; a draft ahead stays as it is.
        """
        with transaction.atomic():
            row = self.locked_agent()
            moved = row.active_version_id != self.pk
            if moved:
                move(row, head=None if row.has_draft else self, live=self, reason=f"Made v{self.version_number} live")
        show(self.agent, row)
        return moved

    def restore(self) -> AgentVersion:
        """This picture as a new version, live unless the change says otherwise; what is there now stays in history."""
        label = f" ({self.name})" if self.name else ""
        with transaction.atomic():
            row = self.locked_agent()
            version = AgentVersion.objects.append(
                row,
                self.snapshot_text,
                based_on=row.head_version,
                message=f"Restored from version {self.version_number}{label}",
                source=Source.RESTORE,
            )
            move(row, head=version, live=None if current().publish is False else version)
            version.save(force_insert=True)
        show(self.agent, row)
        return version

    def amend(self, fields: dict[str, Any]) -> AgentVersion | None:
        """This live picture with the named fields changed, as a new live version; the draft ahead stays the head."""
        text = canonical({**self.snapshot, **shapes.to_body(fields)})
        if digest(text) == self.snapshot_hash:
            return None
        with transaction.atomic():
            row = self.locked_agent()
            version = AgentVersion.objects.append(row, text, based_on=self, message=EDITED)
            move(row, live=version)
            version.save(force_insert=True)
        show(self.agent, row)
        return version

    def remove(self) -> None:
        """Delete this version. The live one stays; where it was the head, the head returns to live."""
        with transaction.atomic():
            row = self.locked_agent()
            if row.active_version_id == self.pk:
                raise ValidationError(
                    "Cannot delete the active version. Activate a different version first.", code="active_version"
                )
            if row.head_version_id == self.pk:
                move(row, head=row.active_version)
            AgentVersion.objects.filter(pk=self.pk).delete()
        show(self.agent, row)

    def locked_agent(self) -> Agent:
        """The agent under its lock, once this version is known to exist still."""
        row = Agent.objects.locked(self.agent_id)
        if not AgentVersion.objects.filter(pk=self.pk).exists():
            raise AgentVersion.DoesNotExist(f"Version {self.version_number} of agent {self.agent_id} is gone.")
        return row


class Activation(models.Model):
    """One move of the live pointer. Versions are plain values: what was live is known after a version was pruned."""

    agent = models.ForeignKey(Agent, models.CASCADE, related_name="activations", editable=False)
    from_version_id = models.UUIDField(null=True, editable=False)
    from_version_number = models.PositiveIntegerField(null=True, editable=False)
    to_version_id = models.UUIDField(editable=False)
    to_version_number = models.PositiveIntegerField(editable=False)
    author = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True, editable=False, related_name="+")
    author_name = models.CharField(max_length=150, blank=True, default="", editable=False)
    source = models.CharField(max_length=16, choices=Source, default=Source.CODE, editable=False)
    reason = models.CharField(max_length=500, blank=True, default="", editable=False)
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    class Meta:
        ordering: ClassVar = ["-id"]
        indexes: ClassVar = [models.Index(fields=["agent", "-id"], name="activation_newest")]

    def __str__(self) -> str:
        return f"{self.agent_id}: v{self.from_version_number or '–'} → v{self.to_version_number}"


def goes_live(row: Agent) -> bool:
    """Whether a save of this row is released: as the change says, else when no draft is ahead; the first always."""
    publish = current().publish
    return row.head_version is None or (not row.has_draft if publish is None else publish)


def move(row: Agent, *, head: AgentVersion | None = None, live: AgentVersion | None = None, reason: str = "") -> None:
    """Move the pointers of a locked row; nothing else does.

    The row becomes its head's picture, and a move of live is noted.
    """
    values: dict[str, Any] = {
        "revision": row.revision + 1,
        "updated_at": timezone.now(),
        "last_version_number": row.last_version_number,
    }
    before = row.active_version
    if live is not None:
        values["active_version"] = live
    if head is not None:
        values["head_version"] = head
        if digest(row.snapshot_text) != head.snapshot_hash:
            values |= {name: head.snapshot[wire] for name, wire in shapes.WIRE_NAMES.items()}
    Agent.objects.filter(pk=row.pk).write(**values)
    for name, value in values.items():
        setattr(row, name, value)
    if live is not None and live != before:
        note_activation(row, before, live, reason)


def note_activation(row: Agent, before: AgentVersion | None, live: AgentVersion, reason: str) -> None:
    Activation.objects.create(
        agent=row,
        from_version_id=before.pk if before else None,
        from_version_number=before.version_number if before else None,
        to_version_id=live.pk,
        to_version_number=live.version_number,
        source=current().source,
        reason=current().message or reason or live.change_message,
        **author(),
    )


def author() -> dict[str, Any]:
    """Who makes the change: a link that may become null, beside a name that stays."""
    actor = current().actor
    return {"author": actor, "author_name": actor.get_username() if actor else ""}


def show(agent: Agent, row: Agent, fields: Iterable[str] = (*shapes.FIELDS, *POINTERS)) -> None:
    """Let the object in hand show what was written to its row."""
    for name in fields:
        setattr(agent, name, getattr(row, name))
