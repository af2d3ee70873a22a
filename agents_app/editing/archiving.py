"""Archiving: an archived agent is in no list and no picker and does not run. Nothing of it is removed."""

from __future__ import annotations

from datetime import datetime

from django.utils import timezone

from agentcms.db.statements import write_batch
from agents_app.editing.audit import log_agent_action
from agents_app.editing.change_context import current_change
from agents_app.editing.saving import AgentWrite
from agents_app.models import Agent


def archive_locked(row: Agent) -> bool:
    """Archive a row that `get_locked()` locked in this transaction. Return whether it was not archived."""
    if row.archived_at is not None:
        return False
    # The name and no reference: it stays when the user is deleted.
    actor = current_change().actor
    _write(row, timezone.now(), actor.get_username() if actor else "")
    log_agent_action(row.pk, row.name, "Archived")
    return True


def unarchive_locked(row: Agent) -> bool:
    """Unarchive a row that `get_locked()` locked in this transaction. Return whether it was archived."""
    if row.archived_at is None:
        return False
    _write(row, None, "")
    log_agent_action(row.pk, row.name, "Unarchived")
    return True


def _write(row: Agent, archived_at: datetime | None, archived_by_name: str) -> None:
    with write_batch.send_save_signals(row, ["archived_at", "archived_by_name"]):
        write = AgentWrite(row)
        write.set(archived_at=archived_at, archived_by_name=archived_by_name)
        # The revision is part of the ETag: an edit of somebody who read the agent before must fail.
        write.set(revision=row.revision + 1, updated_at=timezone.now())
        write.send()
