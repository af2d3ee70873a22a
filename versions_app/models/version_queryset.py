"""The queryset of versions: how a save or a snapshot of an agent adds one."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NoReturn

from django.db import models, transaction

from agentcms.wire.canonical import sha256_hex
from agents_app.configuration.references import referenced_keys
from agents_app.editing.archive_guard import reject_archived
from agents_app.editing.change_context import current_change
from agents_app.editing.saving import AgentWrite
from agents_app.models import Agent
from agents_app.models.agent import HISTORY_FIELDS, copy_fields
from versions_app.compare.diff import changed_fields
from versions_app.publishing import add_pointer_moves, author_fields, move_pointers, should_publish

if TYPE_CHECKING:
    from versions_app.models import AgentVersion

CREATED_MESSAGE = "Created"
SNAPSHOT_MESSAGE = "Saved by hand"
BYPASSES_HISTORY_MESSAGE = (
    "would make a version past the history. Save the agent, or call its versions' snapshot() or restore()."
)
PUBLISHED_REASON = "Saved and published"
DESCRIPTION_FIELDS = {"name", "change_message", "pinned"}


def reject_immutable_fields(method: str, names: Iterable[str]) -> None:
    """Raise TypeError for fields other than the description."""
    if fields := sorted({*names} - DESCRIPTION_FIELDS):
        changed = ", ".join(fields)
        raise TypeError(f"{method} would change {changed} of versions, which never change. Call update_description().")


class AgentVersionQuerySet(models.QuerySet["AgentVersion"]):
    """Versions. Only a save or a snapshot of an agent adds one. Only `update_description()` changes one."""

    def record(self, agent: Agent) -> AgentVersion | None:
        """Record the agent's row as a version if it differs from its head. Return the version made, if any.

        Publishing an unchanged draft makes it live. The row is read under a lock: the object in hand may be stale.
        """
        with transaction.atomic(savepoint=False):  # no savepoint: nothing catches what fails here
            write = AgentWrite(Agent.objects.get_locked(agent.pk))
            version = self.record_in_write(write)
            write.send()
        copy_fields(agent, write.row, HISTORY_FIELDS)
        return version

    def record_in_write(self, write: AgentWrite) -> AgentVersion | None:
        """`record` for the row of a write that is not sent yet; the version is written with the row."""
        row = write.row
        head, text = row.head_version, row.snapshot_text
        if head is None or sha256_hex(text) != head.snapshot_hash:
            version = self.append(row, text, based_on=head, message="" if head else CREATED_MESSAGE)
            live = version if should_publish(row) else None
            # Without a reason, the entry of the first version has its message: it was created.
            add_pointer_moves(write, head=version, live=live, reason=PUBLISHED_REASON if head else "")
            return version
        if row.has_draft and current_change().publish:
            add_pointer_moves(write, live=head, reason="Published the draft")
        return None

    def snapshot(self, agent: Agent, pinned: bool = False) -> AgentVersion:
        """Add a version equal to the head, with the name and message of the change. It does not go live."""
        with transaction.atomic():
            row = Agent.objects.get_locked(agent.pk)
            version = self.snapshot_locked(row, pinned)
        copy_fields(agent, row, HISTORY_FIELDS)
        return version

    def snapshot_locked(self, row: Agent, pinned: bool) -> AgentVersion:
        """Do what `snapshot` does for a row that `get_locked()` locked in this transaction."""
        version = self.append(row, row.snapshot_text, based_on=row.head_version, message=SNAPSHOT_MESSAGE)
        version.pinned = pinned
        move_pointers(row, head=version)
        return version

    def discard_draft(self, agent: Agent) -> bool:
        """Return the head to the live version. Return whether there was a draft. Its versions stay in the history."""
        with transaction.atomic():
            row = Agent.objects.get_locked(agent.pk)
            discarded = self.discard_draft_locked(row)
        copy_fields(agent, row)
        return discarded

    def discard_draft_locked(self, row: Agent) -> bool:
        """Do what `discard_draft` does for a row that `get_locked()` locked in this transaction."""
        reject_archived(row)
        if not row.has_draft:
            return False
        move_pointers(row, head=row.active_version)
        return True

    def append(
        self, row: Agent, text: str, *, based_on: AgentVersion | None, message: str, source: str = ""
    ) -> AgentVersion:
        """Build the next version of a locked row, not saved yet. Numbers are assigned here only."""
        context = current_change()
        version = self.model(
            agent=row,
            version_number=row.last_version_number + 1,
            name=context.name,
            snapshot_text=text,
            snapshot_hash=sha256_hex(text),
            change_message=context.message or message,
            based_on=based_on.version_number if based_on else None,
            source=source or context.source,
            created_at=context.time,
            **author_fields(),
        )
        version.references = referenced_keys(version.snapshot)
        version.changed_fields = changed_fields(based_on.snapshot if based_on else {}, version.snapshot)
        return version

    def create(self, **values: object) -> NoReturn:
        raise TypeError(f"create() {BYPASSES_HISTORY_MESSAGE}")

    def bulk_create(self, *args: object, **kwargs: object) -> NoReturn:
        raise TypeError(f"bulk_create() {BYPASSES_HISTORY_MESSAGE}")

    def update(self, **values: Any) -> int:
        reject_immutable_fields("update()", values)
        return super().update(**values)

    def bulk_update(self, objs: Iterable[Any], fields: Iterable[str], batch_size: int | None = None) -> int:
        # Before the check, which would use up an iterator.
        fields = list(fields)
        reject_immutable_fields("bulk_update()", fields)
        return super().bulk_update(objs, fields, batch_size)
