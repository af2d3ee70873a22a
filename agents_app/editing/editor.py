"""How the editor saves: it shows the head, and what it saves goes on top of the head."""

from __future__ import annotations

from typing import Any

from agents_app.editing.change_context import change
from agents_app.models import Agent


def save_draft_locked(row: Agent, fields: dict[str, Any]) -> Any:
    """Put the fields on top of the head; live stays. Returns the version made, if any.

    The row came from `get_locked()` in this very transaction.
    """
    if not row.has_changes(fields):
        return None
    with change(publish=False):
        return row.edit_locked(fields)


def publish_locked(row: Agent, fields: dict[str, Any]) -> Any:
    """Put the fields on top of the head and make that live, with all that a draft ahead had gathered.

    Not `Agent.edit`: its publishing edit starts from live and leaves a draft behind. Returns what is live now, or
    None where that was live already.
    """
    if row.has_changes(fields):
        with change(publish=True):
            row.write_locked(fields)
        return row.active_version
    head: Any = row.head_version
    return head if head.activate_locked(row) else None
