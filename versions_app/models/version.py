"""The history of an agent: its versions, and what was live when."""

from __future__ import annotations

import json
from collections.abc import Iterable
from functools import cached_property
from typing import Any, ClassVar, NoReturn

from django.conf import settings
from django.core.exceptions import ValidationError
from django.db import models, transaction
from django.utils import timezone

from agentcms.ids import uuid7
from agentcms.wire.canonical import canonical, sha256_hex
from agents_app.configuration import schema
from agents_app.configuration.references import referenced_keys
from agents_app.editing.change_context import Source, current_change
from agents_app.editing.saving import AgentWrite
from agents_app.models import Agent
from agents_app.models.agent import POINTERS, copy_fields
from versions_app.compare.diff import changed_fields
from versions_app.publishing import add_pointer_moves, author_fields, move_pointers, should_publish

CREATED = "Created"
EDITED = "Auto-saved after edit"
SNAPSHOT = "Saved by hand"
PAST_HISTORY = "would make a version past the history. Save the agent, or call its versions' snapshot() or restore()."
DESCRIPTION = {"name", "change_message", "pinned"}
PUBLISHED = "Saved and published"  # why live moved, where nobody said it


def refuse(door: str, names: Iterable[str]) -> None:
    """Keep a door shut on what never changes of a version."""
    if closed := sorted(set(names) - DESCRIPTION):
        raise TypeError(
            f"{door} would change {', '.join(closed)} of versions, which never change. Call update_description()."
        )


class AgentVersionQuerySet(models.QuerySet["AgentVersion"]):
    """Versions. Only saving an agent adds one, and only `update_description()` changes one."""

    def record(self, agent: Agent) -> AgentVersion | None:
        """Record the agent's row as a version if it differs from its head. Return the version made, if any.

        Publishing an unchanged draft makes it live. The row is read under a lock: the object in hand may be stale.
        """
        with transaction.atomic(savepoint=False):  # no savepoint: nothing catches what fails here
            write = AgentWrite(Agent.objects.get_locked(agent.pk))
            version = self.record_in_write(write)
            write.send()
        copy_fields(agent, write.row, POINTERS)
        return version

    def record_in_write(self, write: AgentWrite) -> AgentVersion | None:
        """`record` for the row of a write that is not sent yet; the version is written with the row."""
        row = write.row
        head, text = row.head_version, row.snapshot_text
        if head is None or sha256_hex(text) != head.snapshot_hash:
            version = self.append(row, text, based_on=head, message=EDITED if head else CREATED)
            live = version if should_publish(row) else None
            add_pointer_moves(write, head=version, live=live, reason=PUBLISHED if head else "")
            return version
        if row.has_draft and current_change().publish:
            add_pointer_moves(write, live=head, reason="Published the draft")
        return None

    def snapshot(self, agent: Agent, pinned: bool = False) -> AgentVersion:
        """A version by hand, equal to the head, under the name and message of the change; it does not go live."""
        with transaction.atomic():
            row = Agent.objects.get_locked(agent.pk)
            version = self.snapshot_locked(row, pinned)
        copy_fields(agent, row, POINTERS)
        return version

    def snapshot_locked(self, row: Agent, pinned: bool = False) -> AgentVersion:
        """`snapshot` for a row that came from `get_locked()` in this very transaction."""
        version = self.append(row, row.snapshot_text, based_on=row.head_version, message=SNAPSHOT)
        version.pinned = pinned
        move_pointers(row, head=version)
        return version

    def discard_draft(self, agent: Agent) -> bool:
        """Return the head to what is live; whether there was a draft to discard. Its versions stay in the history."""
        with transaction.atomic():
            row = Agent.objects.get_locked(agent.pk)
            discarded = self.discard_draft_locked(row)
        copy_fields(agent, row)
        return discarded

    def discard_draft_locked(self, row: Agent) -> bool:
        """`discard_draft` for a row that came from `get_locked()` in this very transaction."""
        if not row.has_draft:
            return False
        move_pointers(row, head=row.active_version)
        return True

    def append(
        self, row: Agent, text: str, *, based_on: AgentVersion | None, message: str, source: str = ""
    ) -> AgentVersion:
        """The next version of a locked row, not saved yet. Every number is handed out here."""
        said = current_change()
        version = AgentVersion(
            agent=row,
            version_number=row.last_version_number + 1,
            name=said.name,
            snapshot_text=text,
            snapshot_hash=sha256_hex(text),
            change_message=said.message or message,
            based_on=based_on.version_number if based_on else None,
            source=source or said.source,
            created_at=said.time,
            **author_fields(),
        )
        version.references = referenced_keys(version.snapshot)
        version.changed_fields = changed_fields(based_on.snapshot if based_on else {}, version.snapshot)
        return version

    def create(self, **values: Any) -> NoReturn:
        raise TypeError(f"create() {PAST_HISTORY}")

    def bulk_create(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise TypeError(f"bulk_create() {PAST_HISTORY}")

    def update(self, **values: Any) -> int:
        refuse("update()", values)
        return super().update(**values)

    def bulk_update(self, objs: Iterable[Any], fields: Iterable[str], batch_size: int | None = None) -> int:
        fields = list(fields)
        refuse("bulk_update()", fields)
        return super().bulk_update(objs, fields, batch_size)


class AgentVersion(models.Model):
    """An immutable picture of an agent. Only its name, message and pin may change; the database refuses the rest."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    # Found by the constraint's index.
    agent = models.ForeignKey(Agent, models.CASCADE, related_name="versions", editable=False, db_index=False)
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

    def save(self, **options: Any) -> None:
        if self._state.adding:  # what `append` numbered under the agent's lock is inserted beneath
            raise TypeError(f"save() {PAST_HISTORY}")
        super().save(**options)

    @cached_property
    def snapshot(self) -> dict[str, Any]:
        """The configuration under its wire names."""
        picture: dict[str, Any] = json.loads(self.snapshot_text)
        return picture

    @property
    def custom_message(self) -> str:
        """What somebody said of the change, without what is noted of every edit."""
        return "" if self.change_message == EDITED else self.change_message

    # Each verb locks the agent's row. Its `_locked` variant takes a row from `get_locked()` of the same transaction.

    def activate(self) -> bool:
        """Make this version live; whether that moved anything.

        Without a draft ahead the head follows and the row becomes this picture; a draft ahead stays as it is.
        """
        with transaction.atomic():
            row = self.locked_agent()
            moved = self.activate_locked(row)
        copy_fields(self.agent, row)
        return moved

    def activate_locked(self, row: Agent) -> bool:
        if row.active_version_id == self.pk:
            return False
        move_pointers(row, head=None if row.has_draft else self, live=self, reason=f"Made v{self.version_number} live")
        return True

    def restore(self) -> AgentVersion:
        """This picture as a new version, live unless the change says otherwise; what is there now stays in history."""
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

    def amend_locked(self, row: Agent, fields: dict[str, Any]) -> AgentVersion | None:
        picture = {**self.snapshot, **schema.to_wire_dict(fields)}
        text = canonical(picture)
        if sha256_hex(text) == self.snapshot_hash:
            return None
        version = AgentVersion.objects.append(row, text, based_on=self, message=EDITED)
        move_pointers(row, live=version, reason=PUBLISHED)
        return version

    def remove(self) -> None:
        """Delete this version. The live one stays; where it was the head, the head returns to live."""
        with transaction.atomic():
            row = self.locked_agent()
            self.remove_locked(row)
        copy_fields(self.agent, row)

    def remove_locked(self, row: Agent) -> None:
        if row.active_version_id == self.pk:
            raise ValidationError(
                "Cannot delete the active version. Activate a different version first.", code="active_version"
            )
        if row.head_version_id == self.pk:
            move_pointers(row, head=row.active_version)
        AgentVersion.objects.filter(pk=self.pk).delete()

    def update_description(self, **said: Any) -> None:
        """Change the name, the message or the pin, which are all that may change of a version."""
        with transaction.atomic():
            self.locked_agent()  # or a sweep that has chosen this version would remove it although it is pinned now
            self.update_description_locked(**said)

    def update_description_locked(self, **said: Any) -> None:
        AgentVersion.objects.filter(pk=self.pk).update(**said)
        for name, value in said.items():
            setattr(self, name, value)

    def locked_agent(self) -> Agent:
        """The agent under its lock, once this version is known to exist still."""
        row = Agent.objects.get_locked(self.agent_id)
        if not AgentVersion.objects.filter(pk=self.pk).exists():
            raise AgentVersion.DoesNotExist(f"Version {self.version_number} of agent {self.agent_id} is gone.")
        return row
