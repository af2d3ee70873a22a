"""What the API's views of agents and versions share: find and check, and answer."""

from __future__ import annotations

from rest_framework.request import Request

from access_app.permissions import require_granted
from access_app.role import Role
from agentcms.api.exceptions import api_error
from agentcms.errors import ApiError, BadRequest, NotFound
from agents_app.api.conditional import check_match
from agents_app.configuration.schema import ShapeError
from agents_app.editing.locking import held
from agents_app.models import Agent, AgentQuerySet


@api_error.register
def _shape(exception: ShapeError) -> ApiError:
    return BadRequest("request body", exception.issues)


def missing(agent_id: str) -> NotFound:
    """The one answer for an agent that is not there and for one that the caller may not see."""
    return NotFound(f"Stored agent with id {agent_id} not found")


def visible(request: Request) -> AgentQuerySet:
    """The agents that the caller may see."""
    return Agent.objects.for_user(request.user)


def hold(request: Request, agent_id: str, role: Role, hint: str = "") -> Agent:
    """The agent under its lock, once the caller may see it, has the role for it, and knows its present state.

    Inside a transaction; what the view then answers is what it did itself, however many write at once.
    """
    agent = held(request.user, agent_id)
    if agent is None:
        raise missing(agent_id)
    require_granted(request.user, role, agent, hint)
    check_match(request, agent)
    return agent
