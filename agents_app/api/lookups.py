"""What the API's views of agents and versions share: find and check, and answer."""

from __future__ import annotations

from rest_framework.request import Request

from access_app.permissions import require_granted_role
from access_app.role import Role
from agentcms.api.exceptions import api_error
from agentcms.errors import ApiError, BadRequest, NotFound
from agents_app.api.conditional import validate_if_match
from agents_app.configuration.schema import ConfigError
from agents_app.editing.locking import lock_agent_for
from agents_app.models import Agent, AgentQuerySet


@api_error.register
def _config_error(exception: ConfigError) -> ApiError:
    return BadRequest("request body", exception.issues)


def agent_not_found(agent_id: str) -> NotFound:
    """The one answer for an agent that is not there and for one that the caller may not see."""
    return NotFound(f"Stored agent with id {agent_id} not found")


def visible_agents(request: Request) -> AgentQuerySet:
    """The agents that the caller may see."""
    return Agent.objects.for_user(request.user)


def lock_agent(request: Request, agent_id: str, role: Role, hint: str = "") -> Agent:
    """The agent under its lock, once the caller may see it, has the role for it, and knows its present state.

    Inside a transaction; what the view then answers is what it did itself, however many write at once.
    """
    agent = lock_agent_for(request.user, agent_id)
    if agent is None:
        raise agent_not_found(agent_id)
    require_granted_role(request.user, role, agent, hint)
    validate_if_match(request, agent)
    return agent
