"""What the pages of agents share: find, check, and ask before an act."""

from __future__ import annotations

from typing import Any

from django.http import Http404, HttpRequest
from django.shortcuts import get_object_or_404

from access_app.permissions import granted_covers, has_role_everywhere, require_granted_role
from access_app.role import Role
from access_app.teams import highest_role, known_owners
from agents_app.models import Agent, AgentQuerySet

GET_POST = ("GET", "HEAD", "POST")

# A page shows an agent's row; the two pictures of it are as long again, and only their facts are needed.
SNAPSHOT_TEXTS = ("active_version__snapshot_text", "head_version__snapshot_text")


def visible_agents(request: HttpRequest) -> AgentQuerySet:
    """The agents that the caller may see, each with the role that its owner granted."""
    return Agent.objects.for_user(request.user).with_role(request.user)


def get_agent(request: HttpRequest, agent_id: str) -> Agent:
    """The agent with its live and its head version; one that the caller may not see does not exist."""
    return get_object_or_404(visible_agents(request).with_versions().defer(*SNAPSHOT_TEXTS), pk=agent_id)


def lock_agent(request: HttpRequest, agent_id: str, role: Role) -> Agent:
    """The agent under its lock, once the caller may see it and has the role for it. Inside a transaction."""
    try:
        agent = visible_agents(request).get_locked(agent_id)
    except Agent.DoesNotExist:
        raise Http404 from None
    require_granted_role(request.user, role, agent)
    return agent


def has_role_for(request: HttpRequest, agent: Any, role: Role) -> bool:
    """Whether the caller has the role for the agent, which came through `visible`."""
    return granted_covers(request.user, role, agent.granted)


def missing_role_message(request: HttpRequest, agent: Any, role: Role) -> str:
    """Why the caller may not do what needs a role; empty for those who may."""
    if has_role_for(request, agent, role):
        return ""
    return f"This {role_requirement(agent, role)}"


def role_requirement(agent: Any, role: Role) -> str:
    where = f"for {agent.owner_id}" if agent.owner_id else "for the shared space"
    return f"needs the role {role.value} {where}. Ask a manager of the team for it."


def permission_context(request: HttpRequest, agent: Any) -> dict[str, Any]:
    """What the caller may do with the agent, for its pages, and a sentence on what not."""
    may_edit, may_publish = has_role_for(request, agent, Role.EDITOR), has_role_for(request, agent, Role.PUBLISHER)
    limits = ""
    if not may_edit:
        limits = f"You may read this agent. Changing it {role_requirement(agent, Role.EDITOR)}"
    elif not may_publish:
        limits = f"You may save drafts. Making one live {role_requirement(agent, Role.PUBLISHER)}"
    return {
        "may_edit": may_edit,
        "may_publish": may_publish,
        "limits": limits,
    }


def can_duplicate(request: HttpRequest, agent: Any) -> bool:
    """Whether the caller may create agents for some owner, be it another one than this agent's."""
    if has_role_for(request, agent, Role.EDITOR):
        return True
    highest = highest_role(request.user)
    return highest is not None and highest.covers(Role.EDITOR)


def owner_choices(request: HttpRequest, role: Role) -> list[str]:
    """The owners for which the caller has the role; for superusers also those that own agents and have no members."""
    owners = known_owners(request.user, role)
    if not has_role_everywhere(request.user, role):
        return owners
    return sorted({*owners, *Agent.objects.order_by().values_list("owner_id", flat=True).distinct()})
