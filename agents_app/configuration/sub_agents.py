"""References between agents: the dependents of an agent, and circular references."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter

from django.db.models import Q

from access_app.caller import Caller
from access_app.permissions import SHARED_OWNER
from agentcms.db.locks import lock_name
from agentcms.plural import join_words
from agentcms.wire.json_types import JSONObject
from agents_app.configuration.schema import Issue
from agents_app.editing.version_refusals import MoveRefused
from agents_app.models import Agent, AgentIndex, AgentQuerySet
from agents_app.models.querysets import usable_owners
from agents_app.models.search_index import find_references_to

MAX_LISTED_DEPENDENTS = 100  # in one response
MAX_NAMED_DEPENDENTS = 10  # in one sentence


class CircularReference(MoveRefused):
    """Sub-agents that refer back to the agent, with an issue for each."""


def find_dependents(agent: Agent, new_owner_id: str | None = None) -> AgentQuerySet:
    """Return the agents whose live or head configuration uses this agent as a sub-agent.

    With `new_owner_id`, only those that lose it when it belongs to that owner.
    """
    referencing = AgentIndex.objects.referencing(agent.pk).values("agent")
    agents = Agent.objects.filter(pk__in=referencing).exclude(pk=agent.pk)
    # Agents of other owners may have the same ID in their list, but it does not resolve to this agent.
    agents = agents if agent.owner_id == SHARED_OWNER else agents.filter(owner_id=agent.owner_id)
    if new_owner_id is None:
        return agents
    return agents.none() if new_owner_id == SHARED_OWNER else agents.exclude(owner_id=new_owner_id)


def dependents_payload(user: Caller, agent: Agent, new_owner_id: str | None = None) -> JSONObject:
    """Return the dependents that the user may see, and the number of the others.

    With `new_owner_id`, only those count that lose the agent when it belongs to that owner.
    """
    return listed_agents(user, find_dependents(agent, new_owner_id))


def listed_agents(user: Caller, agents: AgentQuerySet) -> JSONObject:
    """Return those of the agents that the user may see, and the number of the others."""
    visible = agents.for_user(user)
    rows = visible.order_by("name", "pk").values("id", "name", "owner_id")[:MAX_LISTED_DEPENDENTS]
    total = agents.count()
    hidden = total - visible.count()
    return {
        "dependents": [{"id": row["id"], "name": row["name"], "ownerId": row["owner_id"]} for row in rows],
        "total": total,
        **count_hidden(hidden),
    }


def count_hidden(hidden: int) -> JSONObject:
    """Return how many dependents the user may not see, also under the name that the published client reads."""
    return {"hidden": hidden, "hiddenCount": hidden}


def find_dependents_of_each(agents: Mapping[str, Agent]) -> dict[str, set[str]]:
    """Return the IDs of the dependents of each of these agents, by one query for all."""
    dependents: dict[str, set[str]] = {agent_id: set() for agent_id in agents}
    for agent_id, dependent_id, owner_id in find_references_to(agents.keys()) if agents else ():
        if dependent_id != agent_id and agents[agent_id].owner_id in usable_owners(owner_id):
            dependents[agent_id].add(dependent_id)
    return dependents


def dependents_payloads(user: Caller, dependents: Mapping[str, Collection[str]]) -> dict[str, JSONObject]:
    """Return what `dependents_payload` says of the dependents of each agent, by one query for all."""
    visible = Agent.objects.for_user(user).with_ids({pk for ids in dependents.values() for pk in ids})
    columns = visible.order_by("name", "pk").values_list("id", "name", "owner_id")
    rows = list(columns) if any(dependents.values()) else []
    payloads: dict[str, JSONObject] = {}
    for agent_id, ids in dependents.items():
        seen = [{"id": pk, "name": name, "ownerId": owner_id} for pk, name, owner_id in rows if pk in ids]
        total = len(ids)
        payloads[agent_id] = {
            "dependents": seen[:MAX_LISTED_DEPENDENTS],
            "total": total,
            **count_hidden(total - len(seen)),
        }
    return payloads


def describe_dependents(user: Caller, agent: Agent, new_owner_id: str | None = None) -> str:
    """Return the agents of `find_dependents()` as a part of a sentence. Empty without any."""
    return name_agents(dependents_payload(user, agent, new_owner_id=new_owner_id))


def name_agents(payload: JSONObject) -> str:
    """Return the agents of `listed_agents()` as a part of a sentence. Empty without any."""
    if not payload["total"]:
        return ""
    names = [f"'{dependent['id']}'" for dependent in payload["dependents"][:MAX_NAMED_DEPENDENTS]]
    if more := payload["total"] - len(names):
        names.append(f"{more} more" if names else f"{more} that you may not see")
    return join_words(names)


def sub_agents_among(agents: Mapping[str, Agent]) -> dict[str, list[str]]:
    """Return the IDs of the sub-agents of each agent that are among the agents too."""
    index_rows = AgentIndex.objects.filter(~Q(agents=[]), agent__in=list(agents)).values_list("agent_id", "agents")
    sub_agents: dict[str, list[str]] = {}
    for agent_id, keys in index_rows:  # a row for the live and one for the head configuration
        owners = usable_owners(agents[agent_id].owner_id)
        usable_keys = [key for key in keys if key != agent_id and key in agents and agents[key].owner_id in owners]
        sub_agents.setdefault(agent_id, []).extend(usable_keys)
    return sub_agents


def order_dependents_first(agent_ids: Iterable[str]) -> list[str]:
    """Return these IDs with each agent after those among them that use it as a sub-agent."""
    ids = [*dict.fromkeys(agent_ids)]
    sorter = TopologicalSorter[str](dict.fromkeys(ids, ()))
    references = AgentIndex.objects.filter(~Q(agents=[]), agent__in=ids).order_by("agent")
    for agent_id, keys in references.values_list("agent_id", "agents"):
        for key in {*keys} & {*ids} - {agent_id}:
            sorter.add(key, agent_id)
    try:
        return [*sorter.static_order()]
    except CycleError:  # agents in a circle have no such order
        return ids


def reject_circular_reference(user: Caller, agent_id: str, keys: Sequence[str]) -> None:
    """Raise CircularReference for sub-agents that refer back to the agent, among the agents that the user may see.

    Inside the transaction that stores the reference.
    """
    if not keys:
        return
    # Two agents that name each other at the same moment are in two transactions, which do not see each other's rows.
    lock_name("sub-agents")
    issues = []
    next_steps = next_steps_to(agent_id, reference_graph(user, keys))
    for position, key in enumerate(keys):
        if key == agent_id:
            issues.append(Issue(f"agents[{position}]", "An agent cannot be its own sub-agent."))
        elif key in next_steps:
            path = " → ".join([agent_id, *_path(key, next_steps)])
            issues.append(Issue(f"agents[{position}]", f"This is a circular reference: {path}."))
    if issues:
        raise CircularReference(issues)


def reference_graph(user: Caller, starts: Iterable[str]) -> dict[str, set[str]]:
    """Return the sub-agents of every agent reachable from `starts`, in live and head configurations.

    Agents that the user may not see are not followed.
    """
    graph: dict[str, set[str]] = {}
    visited: set[str] = set()
    while pending := {*starts} - visited:
        visited |= pending
        starts = set()
        visible = Agent.objects.for_user(user).with_ids(pending)
        index_rows = AgentIndex.objects.filter(~Q(agents=[]), agent__in=visible)
        for agent_id, keys in index_rows.values_list("agent_id", "agents"):
            graph.setdefault(agent_id, set()).update(keys)
            starts.update(keys)
    return graph


def next_steps_to(goal: str, graph: Mapping[str, Iterable[str]]) -> dict[str, str]:
    """Return the next agent on the shortest path to the goal, for each agent from which it is reachable."""
    # Backwards from the goal: one search finds the paths of all sub-agents.
    users: dict[str, list[str]] = {}
    # In one order, so that the message names the same path each time.
    for agent_id, keys in sorted(graph.items()):
        for key in keys:
            users.setdefault(key, []).append(agent_id)
    next_steps: dict[str, str] = {}
    queue = deque([goal])
    while queue:
        current = queue.popleft()
        for agent_id in users.get(current, ()):
            if agent_id != goal and agent_id not in next_steps:
                next_steps[agent_id] = current
                queue.append(agent_id)
    return next_steps


def _path(start: str, next_steps: Mapping[str, str]) -> Iterator[str]:
    current: str | None = start
    while current is not None:
        yield current
        current = next_steps.get(current)
