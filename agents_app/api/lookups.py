"""Lookups shared by the API views of agents and versions."""

from __future__ import annotations

from rest_framework.request import Request

from access_app.permissions import require_granted_role
from access_app.role import Role
from agentcms.api.exceptions import api_error
from agentcms.errors import ApiError, BadRequest, NotFound
from agents_app.api.conditional import validate_if_match
from agents_app.api.required_role import note_required_role
from agents_app.configuration.schema import ConfigError
from agents_app.editing.locking import lock_agent_for
from agents_app.models import Agent


@api_error.register
def _config_error(exception: ConfigError) -> ApiError:
    return BadRequest("request body", exception.issues)


def agent_not_found(agent_id: str) -> NotFound:
    """Return the same error for an agent that does not exist and for one that the caller may not see."""
    return NotFound(f"Stored agent with id {agent_id} not found")


def lock_matching_agent(request: Request, agent_id: str, role: Role, hint: str = "") -> Agent:
    """Lock an agent for a write, inside a transaction.

    Raises NotFound where the caller may not see it, RoleRequired without the role (with `hint` in the message), and
    PreconditionFailed where `If-Match` names another state.
    """
    agent = lock_agent_for(request.user, agent_id)
    if agent is None:
        raise agent_not_found(agent_id)
    require_granted_role(request.user, role, agent, hint)
    note_required_role(role, agent.owner_id)
    validate_if_match(request, agent)
    return agent
