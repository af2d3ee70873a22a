"""The rule that an archived agent neither changes nor runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.core.exceptions import PermissionDenied

if TYPE_CHECKING:
    from agents_app.models import Agent


class AgentArchived(PermissionDenied):
    """The agent is archived, so it can be read, duplicated and deleted only."""

    def __init__(self, agent_id: str) -> None:
        super().__init__(f"Agent {agent_id} is archived. Unarchive it first.")


def reject_archived(agent: Agent) -> None:
    """Raise AgentArchived if the agent is archived."""
    if agent.archived_at is not None:
        raise AgentArchived(agent.pk)
