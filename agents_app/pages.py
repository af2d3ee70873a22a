"""What the pages of agents share: find and check."""

from __future__ import annotations

from typing import Any

from django.http import Http404, HttpRequest
from django.shortcuts import get_object_or_404

from access_app.roles import Role, covers, require_granted
from agents_app.models import Agent, AgentQuerySet

GET_POST = ("GET", "HEAD", "POST")

# A page shows an agent's row; the two pictures of it are as long again, and only their facts are needed.
PICTURES = ("active_version__snapshot_text", "head_version__snapshot_text")


def visible(request: HttpRequest) -> AgentQuerySet:
    """The agents that the caller may see, each with the role that its owner granted."""
    return Agent.objects.for_user(request.user).with_role(request.user)


def find(request: HttpRequest, agent_id: str) -> Agent:
    """The agent with its live and its head version; one that the caller may not see does not exist."""
    return get_object_or_404(visible(request).with_versions().defer(*PICTURES), pk=agent_id)


def hold(request: HttpRequest, agent_id: str, role: Role) -> Agent:
    """The agent under its lock, once the caller may see it and has the role for it. Inside a transaction."""
    try:
        agent = visible(request).locked(agent_id)
    except Agent.DoesNotExist:
        raise Http404 from None
    require_granted(request.user, role, agent)
    return agent


def may(request: HttpRequest, agent: Any, role: Role) -> bool:
    """Whether the caller has the role for the agent, which came through `visible`."""
    return covers(request.user, role, agent.granted)


def is_htmx(request: HttpRequest) -> bool:
    return bool(getattr(request, "htmx", False))
