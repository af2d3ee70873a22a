"""The entries of the admin's log about whole agents: archived, deleted, restored. A version records every edit."""

from __future__ import annotations

import logging

from django.contrib.admin.models import CHANGE, LogEntry
from django.contrib.contenttypes.models import ContentType

from agents_app.editing.change_context import Source, current_change
from agents_app.models import Agent

log = logging.getLogger(__name__)


def log_agent_action(agent_id: str, name: str, message: str, flag: int = CHANGE) -> None:
    """Write what the current change does to an agent to the admin's log. The log needs a user, so code writes none."""
    change = current_change()
    log.info("%s: agent %s, by user %s.", message, agent_id, change.actor.pk if change.actor else "none")
    if change.actor is not None:
        LogEntry.objects.create(
            user=change.actor,
            content_type=ContentType.objects.get_for_model(Agent),
            object_id=agent_id,
            object_repr=name[:200],  # the length of the column
            action_flag=flag,
            change_message=f"{message} ({Source(change.source).label}).",
        )
