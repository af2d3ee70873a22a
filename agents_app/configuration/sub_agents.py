"""Agents that name other agents: who depends on one, and whether naming one closes a circle."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from django.db.models import Q

from access_app.permissions import SHARED_OWNER
from agents_app.configuration.schema import ConfigError, Issue
from agents_app.models import Agent, AgentIndex, AgentQuerySet

MAX_LISTED_DEPENDENTS = 100  # dependents that one answer names


class CircularReference(ConfigError):
    """Sub-agents that lead back to the agent, each with its place and the way."""

    @property
    def sentence(self) -> str:
        return " ".join(issue.message for issue in self.issues)


def find_dependents(agent: Agent) -> AgentQuerySet:
    """The agents whose live or head configuration names this one, and for which the name means this one."""
    naming = AgentIndex.objects.referencing(agent.pk).values("agent")
    found = Agent.objects.filter(pk__in=naming).exclude(pk=agent.pk)
    # A sub-agent resolves within its user's owner or the shared space only.
    return found if agent.owner_id == SHARED_OWNER else found.filter(owner_id=agent.owner_id)


def dependents_payload(user: Any, agent: Agent) -> dict[str, Any]:
    """Those that the caller may see, by name, and how many more there are."""
    found = find_dependents(agent)
    seen = found.for_user(user)
    shown = seen.order_by("name", "pk").values("id", "name", "owner_id")[:MAX_LISTED_DEPENDENTS]
    total = found.count()
    return {
        "dependents": [{"id": each["id"], "name": each["name"], "ownerId": each["owner_id"]} for each in shown],
        "total": total,
        "hidden": total - seen.count(),
    }


def dependents_message(user: Any, agent: Agent) -> str | None:
    """Who still names an agent, in a sentence, or None."""
    body = dependents_payload(user, agent)
    if not body["total"]:
        return None
    named = [f"'{each['id']}'" for each in body["dependents"][:10]]
    if more := body["total"] - len(named):
        named.append(f"{more} more" if named else f"{more} that you may not see")
    names = " and ".join(filter(None, (", ".join(named[:-1]), named[-1])))
    return f"Agent {agent.pk} is a sub-agent of {names}. Send force=true to delete it all the same."


def reject_circular_reference(user: Any, agent_id: str, keys: Sequence[str]) -> None:
    """Refuse sub-agents that lead back to the agent, as far as the caller can see. Raises Circle."""
    if not keys:
        return
    issues = []
    following = next_steps_to(agent_id, reference_graph(user, keys))
    for place, key in enumerate(keys):
        if key == agent_id:
            issues.append(Issue(f"agents[{place}]", "An agent cannot be its own sub-agent."))
        elif key in following:
            way = " → ".join([agent_id, *_path(key, following)])
            issues.append(Issue(f"agents[{place}]", f"This closes a circle: {way}."))
    if issues:
        raise CircularReference(issues)


def reference_graph(user: Any, starts: Iterable[str]) -> dict[str, set[str]]:
    """What each agent names that these lead to, as far as the caller can see, in live and head configurations."""
    named: dict[str, set[str]] = {}
    asked: set[str] = set()
    while wanted := {*starts} - asked:
        asked |= wanted
        starts = set()
        seen = Agent.objects.for_user(user).with_ids(wanted)
        states = AgentIndex.objects.filter(~Q(agents=[]), agent__in=seen)
        for agent_id, keys in states.values_list("agent_id", "agents"):
            named.setdefault(agent_id, set()).update(keys)
            starts.update(keys)
    return named


def next_steps_to(goal: str, named: Mapping[str, Iterable[str]]) -> dict[str, str]:
    """For each agent that leads to the goal, the next one on its shortest way there."""
    named_by: dict[str, list[str]] = {}
    for agent_id, keys in sorted(named.items()):
        for key in keys:
            named_by.setdefault(key, []).append(agent_id)
    following: dict[str, str] = {}
    reached = deque([goal])
    while reached:
        at = reached.popleft()
        for agent_id in named_by.get(at, ()):
            if agent_id != goal and agent_id not in following:
                following[agent_id] = at
                reached.append(agent_id)
    return following


def _path(start: str, following: Mapping[str, str]) -> Iterator[str]:
    at: str | None = start
    while at is not None:
        yield at
        at = following.get(at)
