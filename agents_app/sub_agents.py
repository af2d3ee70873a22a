"""Agents that name other agents: who depends on one, and whether naming one closes a circle."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.db.models import Q

from access_app.roles import SHARED
from agents_app.models import Agent, AgentIndex, AgentQuerySet
from agents_app.shapes import Issue, ShapeError

MOST_NAMED = 100  # dependents that one answer names


def dependents(agent: Agent) -> AgentQuerySet:
    """The agents whose live or head configuration names this one, and for which the name means this one."""
    naming = AgentIndex.objects.naming(agent.pk).values("agent")
    found = Agent.objects.filter(pk__in=naming).exclude(pk=agent.pk)
    # A sub-agent resolves within its user's owner or the shared space only.
    return found if agent.owner_id == SHARED else found.filter(owner_id=agent.owner_id)


def dependents_body(user: Any, agent: Agent) -> dict[str, Any]:
    """Those that the caller may see, by name, and how many more there are."""
    found = dependents(agent)
    seen = found.for_user(user)
    shown = seen.order_by("name", "pk").values("id", "name", "owner_id")[:MOST_NAMED]
    total = found.count()
    return {
        "dependents": [{"id": each["id"], "name": each["name"], "ownerId": each["owner_id"]} for each in shown],
        "total": total,
        "hidden": total - seen.count(),
    }


def in_use(user: Any, agent: Agent) -> str | None:
    """Who still names an agent, in a sentence, or None."""
    body = dependents_body(user, agent)
    if not body["total"]:
        return None
    named = [f"'{each['id']}'" for each in body["dependents"][:10]]
    if more := body["total"] - len(named):
        named.append(f"{more} more" if named else f"{more} that you may not see")
    names = " and ".join(filter(None, (", ".join(named[:-1]), named[-1])))
    return f"Agent {agent.pk} is a sub-agent of {names}. Send force=true to delete it all the same."


def refuse_circle(user: Any, agent_id: str, keys: Iterable[str]) -> None:
    """Refuse sub-agents that lead back to the agent, as far as the caller can see. Raises ShapeError."""
    issues = []
    for place, key in enumerate(keys):
        if key == agent_id:
            issues.append(Issue(f"agents[{place}]", "An agent cannot be its own sub-agent."))
        elif way := path_to(user, key, agent_id):
            issues.append(
                Issue(f"agents[{place}]", f"This closes a circle: {' → '.join([agent_id, *way, agent_id])}.")
            )
    if issues:
        raise ShapeError(issues)


def path_to(user: Any, start: str, goal: str) -> list[str] | None:
    """The agents from `start` to the one that names `goal`, along live and head configurations; None if none does."""
    came_from: dict[str, str | None] = {start: None}
    frontier = [start]
    while frontier:
        seen = Agent.objects.for_user(user).filter(pk__in=frontier)
        named = AgentIndex.objects.filter(~Q(agents=[]), agent__in=seen).values_list("agent_id", "agents")
        frontier = []
        for agent_id, keys in named:
            if goal in keys:
                return _way(came_from, agent_id)
            for key in keys:
                if key not in came_from:
                    came_from[key] = agent_id
                    frontier.append(key)
    return None


def _way(came_from: dict[str, str | None], last: str) -> list[str]:
    way: list[str] = []
    at: str | None = last
    while at is not None:
        way.insert(0, at)
        at = came_from[at]
    return way
