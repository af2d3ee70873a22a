"""What is done to several agents at once: each for itself, with a sentence about what came of it."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any, NamedTuple

from django.db import IntegrityError, transaction

from access_app.permissions import require_granted_role
from access_app.role import Role, RoleRequired
from agents_app.configuration.sub_agents import CircularReference
from agents_app.models import Agent, AgentQuerySet

MOST = 200


class Result(NamedTuple):
    """What came of one agent."""

    name: str
    done: bool
    sentence: str
    agent_id: str = ""  # where there is something to open


def duplicate(user: Any, agent: Any) -> Result:
    """A copy of what is live, for the same owner, under an id that nobody has yet."""
    require_granted_role(user, Role.EDITOR, agent)
    copy = agent.duplicate(free_id(f"{agent.pk[:110]}-copy"), agent.owner_id, agent.active_version)
    return Result(agent.name, True, f"Duplicated as {copy.pk}.", copy.pk)


def delete(user: Any, agent: Any) -> Result:
    require_granted_role(user, Role.PUBLISHER, agent)
    agent.delete()
    return Result(agent.name, True, "Deleted with its history.")


def publish(user: Any, agent: Any, asked: Collection[str]) -> Result:
    """The draft goes live, if it and live stand as they did when it was asked."""
    require_granted_role(user, Role.PUBLISHER, agent)
    if not agent.has_draft:
        return Result(agent.name, False, "It has no draft.")
    if live_and_draft(agent) not in asked:
        return Result(agent.name, False, "Somebody moved live or the draft meanwhile.")
    agent.head_version.activate_locked(agent)
    return Result(agent.name, True, f"v{agent.head_version.version_number} is live.")


def live_and_draft(agent: Agent) -> str:
    """What is live of an agent and what is its draft, for a page that asks about them."""
    return f"{agent.pk} {agent.active_version_id} {agent.head_version_id}"


def apply_to_each(agents: AgentQuerySet, user: Any, ids: list[str], act: Callable[[Any, Any], Result]) -> list[Result]:
    """Do it to each agent in a transaction of its own; where one cannot be done, the others still are."""
    return [apply_to_one(agents, user, agent_id, act) for agent_id in dict.fromkeys(ids[:MOST])]


def apply_to_one(agents: AgentQuerySet, user: Any, agent_id: str, act: Callable[[Any, Any], Result]) -> Result:
    try:
        with transaction.atomic():
            return act(user, agents.with_role(user).get_locked(agent_id))
    except Agent.DoesNotExist:
        return Result(agent_id, False, "It is no longer there.")
    except RoleRequired as refusal:
        return Result(agent_id, False, str(refusal))
    except CircularReference as refusal:
        return Result(agent_id, False, refusal.summary)
    except IntegrityError:
        return Result(agent_id, False, "Somebody took the id of the copy just now. Try again.")


def free_id(stem: str) -> str:
    """The stem, or the stem with the first number that nobody has yet."""
    taken = set(Agent.objects.filter(pk__startswith=stem).values_list("pk", flat=True))
    numbered = (f"{stem}-{number}" for number in range(2, len(taken) + 3))
    return next(each for each in (stem, *numbered) if each not in taken)
