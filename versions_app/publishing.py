"""The moves of the live and head pointers of an agent, and the activation that logs each move of live."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple

from django.dispatch import Signal

from access_app.permissions import require_role
from access_app.role import Role
from agentcms.db.column_values import ColumnValues
from agentcms.wire.canonical import sha256_hex
from agentcms.wire.json_types import JSONObject
from agents_app.configuration import schema
from agents_app.configuration.sub_agents import reject_circular_reference
from agents_app.editing.archive_guard import reject_archived
from agents_app.editing.change_context import current_change
from agents_app.editing.saving import AgentWrite
from agents_app.editing.version_refusals import GateNotMet
from agents_app.models import Agent
from agents_app.models.search_index import update_index
from versions_app.models.activation import Activation

if TYPE_CHECKING:
    from versions_app.models import AgentVersion

# Each returns why a version may not go live, or a blank text. The row is locked.
Guard = Callable[["Agent", "AgentVersion"], str]
guards: list[Guard] = []


class PublishNotes(NamedTuple):
    """Why guards refuse a version, and what people should know before it goes live. Blank texts are nothing."""

    refusal: str = ""
    warning: str = ""


# Each returns the notes of several agents, each with the version that would go live.
NotesSource = Callable[[Sequence[tuple["Agent", "AgentVersion"]]], Sequence[PublishNotes]]
notes_sources: list[NotesSource] = []

# Sent when a new version was added to the write of its agent's row, before it is written.
# Argument: `write`, an AgentWrite. A receiver may add statements.
version_saving = Signal()


def should_publish(row: Agent) -> bool:
    """Return whether a save of this row goes live: as the change says, else if no draft is ahead. The first always."""
    publish = current_change().publish
    return row.head_version is None or (not row.has_draft if publish is None else publish)


def move_pointers(
    row: Agent, *, head: AgentVersion | None = None, live: AgentVersion | None = None, reason: str = ""
) -> None:
    """Set the live and head versions of a locked agent, saving new versions first.

    The row takes the content of its head. Raise CircularReference and AgentArchived before anything is written.
    """
    reject_archived(row)
    write = AgentWrite(row)
    add_pointer_moves(write, head=head, live=live, reason=reason)
    if head is not None:
        write.set(**row_values(row, head))
    write.send()


def add_pointer_moves(
    write: AgentWrite, *, head: AgentVersion | None = None, live: AgentVersion | None = None, reason: str = ""
) -> None:
    """Add new live and head versions to the write of a row that equals its head. The only writer of these columns.

    A move of live is logged. Raise CircularReference and GateNotMet before anything is added.
    """
    row = write.row
    # First: where a gate refuses a save, only the head moves, and the checks below are those of a draft.
    live = pass_guards(row, live, head)
    reject_new_circular_reference(row, head, live)
    timestamp, before = change_time(head, live), row.active_version
    indexed = row.head_version.snapshot if row.head_version and not row.has_draft else None
    # The counter never goes back: the number of a deleted version must not be used again.
    newest = max(row.last_version_number, *(version.version_number for version in (head, live) if version))
    write.set(revision=row.revision + 1, updated_at=timestamp, last_version_number=newest)
    if live is not None:
        write.set(active_version=live)
    if head is not None:
        write.set(head_version=head)
    update_index(row, indexed, write)
    if live is not None:
        write.insert(build_activation(row, before, live, reason, timestamp))
    for version in unsaved_versions(head, live):
        write.insert(version)
        version_saving.send(type(version), write=write)


def publish_refusal_of(row: Agent, live: AgentVersion) -> str:
    """Return why a version may not replace the live one, or a blank text."""
    if not replaces_live(row, live):
        return ""
    return next((reason for guard in guards if (reason := guard(row, live))), "")


def publish_notes_of(row: Agent, live: AgentVersion) -> PublishNotes:
    """Return the notes of a version that may replace the live one."""
    return publish_notes([(row, live)])[0]


def publish_notes(moves: Sequence[tuple[Agent, AgentVersion]]) -> list[PublishNotes]:
    """Return the notes of each version that may replace the live one of its agent, by as many queries as for one."""
    replacing = [(row, live) for row, live in moves if replaces_live(row, live)]
    by_source = [source(replacing) for source in notes_sources] if replacing else []
    combined = {
        row.pk: PublishNotes(
            next((note.refusal for note in notes if note.refusal), ""),
            " ".join(note.warning for note in notes if note.warning),
        )
        for (row, _), *notes in zip(replacing, *by_source, strict=True)
    }
    return [combined.get(row.pk, PublishNotes()) for row, _ in moves]


def replaces_live(row: Agent, live: AgentVersion) -> bool:
    """Return whether a version replaces the live one. The first replaces nothing, and an equal one changes nothing."""
    before = row.active_version
    return before is not None and before.snapshot_hash != live.snapshot_hash


def pass_guards(row: Agent, live: AgentVersion | None, head: AgentVersion | None) -> AgentVersion | None:
    """Return the version that goes live: None if a guard refuses a save that may stay a draft.

    Raise GateNotMet if the change asks to publish, and RoleRequired if the actor may not bypass a gate.
    """
    reason = publish_refusal_of(row, live) if live is not None else ""
    context = current_change()
    row.is_gate_bypassed = bool(reason and context.bypass_reason)
    if row.is_gate_bypassed and context.actor is not None:  # without an actor it is our own code, such as a repair
        require_role(context.actor, Role.MANAGER, row.owner_id, "Only managers may bypass a gate.")
    if not reason or row.is_gate_bypassed:
        return live
    if context.may_stay_draft and head is not None:
        row.draft_reason = reason
        return None
    raise GateNotMet(reason)


def row_values(row: Agent, head: AgentVersion) -> JSONObject:
    """Return the fields of the row by which it becomes equal to its head; nothing where it is equal."""
    if sha256_hex(row.snapshot_text) == head.snapshot_hash:
        return {}
    snapshot = json.loads(head.snapshot_text)  # a copy: the lists of the row are not those of the version
    return schema.from_snapshot(snapshot)


def reject_new_circular_reference(row: Agent, head: AgentVersion | None, live: AgentVersion | None) -> None:
    """Raise CircularReference if the moved version refers to new sub-agents that lead back to the agent.

    Only agents that the actor can see are followed. Without an actor, as in repairs, nothing is refused: a run does
    not follow circular references.
    """
    version = live or head
    # What goes live is checked again: its sub-agents may lead back to the agent since it was saved as a draft.
    current = [row.active_version] if live else [row.active_version, row.head_version]
    known = {key for before in current if before for key in before.references.get("agents", ())}
    keys = version.references.get("agents", ()) if version else ()
    if not known.issuperset(keys) and (actor := current_change().actor):
        reject_circular_reference(actor, row.pk, keys)


def change_time(*versions: AgentVersion | None) -> datetime:
    """Return the time of a move: that of its new version, if there is one."""
    return next((version.created_at for version in unsaved_versions(*versions)), current_change().time)


def unsaved_versions(*versions: AgentVersion | None) -> list[AgentVersion]:
    """Return the versions that are not saved yet, without repetitions."""
    return [version for version in dict.fromkeys(versions) if version and version._state.adding]


def build_activation(
    row: Agent, before: AgentVersion | None, live: AgentVersion, reason: str, at: datetime | None = None
) -> Activation:
    """Build the log entry of a move of live."""
    return Activation(
        agent=row,
        from_version_id=before.pk if before else None,
        from_version_number=before.version_number if before else None,
        to_version_id=live.pk,
        to_version_number=live.version_number,
        source=current_change().source,
        created_at=at or current_change().time,
        reason=activation_reason(row) or reason or live.change_message,
        **author_fields(),
    )


def activation_reason(row: Agent) -> str:
    """Return what a change says of its move of live: why it bypasses gates, if it does, else its message."""
    context = current_change()
    if row.is_gate_bypassed:
        return f"Gates bypassed: {context.bypass_reason}"
    # The reason of who expected a gate that refuses nothing now, and had no other message.
    return context.message or context.bypass_reason


def author_fields() -> ColumnValues:
    """Return the author of the change: a reference that may become null, and a name that stays."""
    actor = current_change().actor
    return {"author": actor, "author_name": actor.get_username() if actor else ""}
