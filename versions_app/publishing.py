"""The two pointers of an agent's row: who moves them, and the log of every move of live."""

from __future__ import annotations

import json
from datetime import datetime
from typing import TYPE_CHECKING, Any

from agentcms.db import write_batch
from agentcms.wire.canonical import digest
from agents_app.configuration import schema
from agents_app.configuration.sub_agents import refuse_circle
from agents_app.editing.change_context import current
from agents_app.models import Agent
from agents_app.models.search_index import keep
from versions_app.models.activation import Activation
from versions_app.retention import push_out

if TYPE_CHECKING:
    from versions_app.models import AgentVersion


def goes_live(row: Agent) -> bool:
    """Whether a save of this row is released: as the change says, else when no draft is ahead; the first always."""
    publish = current().publish
    return row.head_version is None or (not row.has_draft if publish is None else publish)


def move(row: Agent, *, head: AgentVersion | None = None, live: AgentVersion | None = None, reason: str = "") -> None:
    """Move the pointers of a locked row, to versions that are written too where they are new; nothing else does.

    The row becomes its head's picture, and a move of live is noted. Raises Circle before anything changed.
    """
    refuse_new_circle(row, head, live)
    at = moment(head, live)
    before = row.active_version
    said = row.head_version.snapshot if row.head_version and not row.has_draft else None
    newest = max(row.last_version_number, *(version.version_number for version in (head, live) if version))
    values: dict[str, Any] = {"revision": row.revision + 1, "updated_at": at, "last_version_number": newest}
    if live is not None:
        values["active_version"] = live
    if head is not None:
        values |= {"head_version": head, **picture(row, head)}
    for name, value in values.items():
        setattr(row, name, value)
    columns = sorted({*row.unwritten, *(f"{name}_id" if name.endswith("_version") else name for name in values)})
    row.unwritten = ()
    writes = write_batch.Writes().update(Agent, "id", row.pk, {name: getattr(row, name) for name in columns})
    keep(row, said, writes)
    if live is not None and live != before:
        writes.insert(activation(row, before, live, reason, at))
    for version in new(head, live):
        writes.insert(version)
        push_out(row, writes)
    writes.send()


def picture(row: Agent, head: AgentVersion) -> dict[str, Any]:
    """What the row has to be written to be its head's picture: nothing, where the head was made of it."""
    if row.unwritten or digest(row.snapshot_text) == head.snapshot_hash:
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
    if not known.issuperset(keys) and (actor := current().actor):
        refuse_circle(actor, row.pk, keys)


def moment(*moved: AgentVersion | None) -> datetime:
    """When the pointers move: making a version and its going live are one change, and have one time."""
    return next((version.created_at for version in new(*moved)), current().time)


def new(*moved: AgentVersion | None) -> list[AgentVersion]:
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
        source=current().source,
        created_at=at or current().time,
        reason=current().message or reason or live.change_message,
        **author(),
    )


def author() -> dict[str, Any]:
    """Who makes the change: a link that may become null, beside a name that stays."""
    actor = current().actor
    return {"author": actor, "author_name": actor.get_username() if actor else ""}
