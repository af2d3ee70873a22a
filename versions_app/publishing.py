"""The two pointers of an agent's row: who moves them, and the log of every move of live."""

from __future__ import annotations

import json
from datetime import datetime
from typing import TYPE_CHECKING, Any

from django.dispatch import Signal

from agentcms.wire.canonical import sha256_hex
from agents_app.configuration import schema
from agents_app.configuration.sub_agents import reject_circular_reference
from agents_app.editing.change_context import current_change
from agents_app.editing.saving import AgentWrite
from agents_app.models import Agent
from agents_app.models.search_index import update_index
from versions_app.models.activation import Activation

if TYPE_CHECKING:
    from versions_app.models import AgentVersion

# Sent when a new version was added to the write of its agent's row, before it is written.
# Argument: `write`, an AgentWrite. A receiver may add statements.
version_saving = Signal()


def should_publish(row: Agent) -> bool:
    """Whether a save of this row is released: as the change says, else when no draft is ahead; the first always."""
    publish = current_change().publish
    return row.head_version is None or (not row.has_draft if publish is None else publish)


def move_pointers(
    row: Agent, *, head: AgentVersion | None = None, live: AgentVersion | None = None, reason: str = ""
) -> None:
    """Set the live and head versions of a locked agent, saving new versions first.

    The row takes the content of its head. Raises CircularReference before anything is written.
    """
    write = AgentWrite(row)
    add_pointer_moves(write, head=head, live=live, reason=reason)
    if head is not None:
        write.set(**row_values(row, head))
    write.send()


def add_pointer_moves(
    write: AgentWrite, *, head: AgentVersion | None = None, live: AgentVersion | None = None, reason: str = ""
) -> None:
    """Add new live and head versions to the write of a row that equals its head. The only writer of these columns.

    A move of live is logged. Raises CircularReference before anything is added.
    """
    row = write.row
    refuse_new_circle(row, head, live)
    timestamp, before = change_time(head, live), row.active_version
    indexed = row.head_version.snapshot if row.head_version and not row.has_draft else None
    newest = max(row.last_version_number, *(version.version_number for version in (head, live) if version))
    write.set(revision=row.revision + 1, updated_at=timestamp, last_version_number=newest)
    if live is not None:
        write.set(active_version=live)
    if head is not None:
        write.set(head_version=head)
    update_index(row, indexed, write)
    if live is not None and live != before:
        write.insert(activation(row, before, live, reason, timestamp))
    for version in unsaved_versions(head, live):
        write.insert(version)
        version_saving.send(type(version), write=write)


def row_values(row: Agent, head: AgentVersion) -> dict[str, Any]:
    """Return the fields of the row by which it becomes equal to its head; nothing where it is equal."""
    if sha256_hex(row.snapshot_text) == head.snapshot_hash:
        return {}
    snapshot = json.loads(head.snapshot_text)  # a copy: the lists of the row are not those of the version
    return {name: snapshot[wire] for name, wire in schema.WIRE_NAMES.items()}


def refuse_new_circle(row: Agent, head: AgentVersion | None, live: AgentVersion | None) -> None:
    """Refuse what comes to name sub-agents that lead back to the agent, as far as who makes the change can see.

    Where nobody makes it, as when history catches up, the row is what it is; a run follows no circle anyhow.
    """
    becomes: Any = live or head
    there = [row.active_version] if live else [row.active_version, row.head_version]
    known = {key for version in there if version for key in version.references.get("agents", ())}
    keys = becomes.references.get("agents", ())
    if not known.issuperset(keys) and (actor := current_change().actor):
        reject_circular_reference(actor, row.pk, keys)


def change_time(*moved: AgentVersion | None) -> datetime:
    """When the pointers move: making a version and its going live are one change, and have one time."""
    return next((version.created_at for version in unsaved_versions(*moved)), current_change().time)


def unsaved_versions(*moved: AgentVersion | None) -> list[AgentVersion]:
    """Those of the versions that are not saved yet, each once."""
    return [version for version in dict.fromkeys(moved) if version and version._state.adding]


def activation(
    row: Agent, before: AgentVersion | None, live: AgentVersion, reason: str, at: datetime | None = None
) -> Activation:
    """The note that live moved, not saved yet."""
    return Activation(
        agent=row,
        from_version_id=before.pk if before else None,
        from_version_number=before.version_number if before else None,
        to_version_id=live.pk,
        to_version_number=live.version_number,
        source=current_change().source,
        created_at=at or current_change().time,
        reason=current_change().message or reason or live.change_message,
        **author_fields(),
    )


def author_fields() -> dict[str, Any]:
    """Who makes the change: a link that may become null, beside a name that stays."""
    actor = current_change().actor
    return {"author": actor, "author_name": actor.get_username() if actor else ""}
