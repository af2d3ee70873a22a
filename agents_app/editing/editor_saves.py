"""Saves of the editor. It shows the head, and its changes are made on top of the head."""

from __future__ import annotations

from agentcms.wire.json_types import JSONObject
from agents_app.configuration.mcp_clients import complete_fields
from agents_app.editing.change_context import change
from agents_app.models import Agent
from agents_app.models.version_protocol import Version


def save_draft_locked(row: Agent, fields: JSONObject) -> Version | None:
    """Save validated fields as a draft of a row that `get_locked()` locked. Return the version made, if any."""
    if not row.has_changes(fields):
        return None
    with change(publish=False):
        return row.edit_locked(fields)


def publish_locked(row: Agent, fields: JSONObject) -> Version | None:
    """Publish the head with validated fields on top, of a row that `get_locked()` locked.

    `Agent.edit` would start from the live version and leave a draft alone. Return the live version, or None if it was
    live before.
    """
    fields = complete_fields(fields, row.owner_id)
    if row.has_changes(fields):
        with change(publish=True):
            row.write_locked(fields)
        return row.active_version
    head = row.head_version
    return head if head is not None and head.activate_locked(row) else None
