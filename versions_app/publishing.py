"""The two pointers of an agent's row: who moves them, and the log of every move of live."""

from __future__ import annotations

import json
from datetime import datetime
from typing import TYPE_CHECKING, Any

from agentcms.db import write_batch
from agentcms.wire.canonical import sha256_hex
from agents_app.configuration import schema
from agents_app.configuration.sub_agents import reject_circular_reference
from agents_app.editing.change_context import current_change
from agents_app.models import Agent
from agents_app.models.search_index import update_index
from versions_app.models.activation import Activation
from versions_app.retention import prune_in_batch

if TYPE_CHECKING:
    from versions_app.models import AgentVersion


def should_publish(row: Agent) -> bool:
    """Whether a save of this row is released: as the change says, else when no draft is ahead; the first always."""
    publish = current_change().publish
    return row.head_version is None or (not row.has_draft if publish is None else publish)


def move_pointers(
    row: Agent, *, head: AgentVersion | None = None, live: AgentVersion | None = None, reason: str = ""
) -> None:
    """Move the pointers of a locked row, to versions that are written too where they are new; nothing else does.

    The row becomes its head's picture, and a move of live is noted. Raises Circle before anything changed.
    """
    refuse_new_circle(row, head, live)
    at = change_time(head, live)
    before = row.active_version
    said = row.head_version.snapshot if row.head_version and not row.has_draft else None
    newest = max(row.last_version_number, *(version.version_number for version in (head, live) if version))
    values: dict[str, Any] = {"revision": row.revision + 1, "updated_at": at, "last_version_number": newest}
    if live is not None:
        values["active_version"] = live
    if head is not None:
        values |= {"head_version": head, **row_values(row, head)}
    for name, value in values.items():
        setattr(row, name, value)
    columns = sorted({*row.deferred_fields, *(f"{name}_id" if name.endswith("_version") else name for name in values)})
    row.deferred_fields = ()
    writes = write_batch.WriteBatch().update(Agent, "id", row.pk, {name: getattr(row, name) for name in columns})
    update_index(row, said, writes)
    if live is not None and live != before:
        writes.insert(activation(row, before, live, reason, at))
    for version in unsaved_versions(head, live):
        writes.insert(version)
        prune_in_batch(row, writes)
    writes.send()


def row_values(row: Agent, head: AgentVersion) -> dict[str, Any]:
    """What the row has to be written to be its head's picture: nothing, where the head was made of it."""
    if row.deferred_fields or sha256_hex(row.snapshot_text) == head.snapshot_hash:
        return {}
    snapshot = json.loads(head.snapshot_text)  # anew: the row's lists are not the picture's
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
