"""Actions on several agents. Each agent has a transaction and a result of its own."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import NamedTuple

from django.db import IntegrityError, transaction

from access_app.caller import Caller
from access_app.permissions import require_granted_role
from access_app.role import Role, RoleRequired
from agents_app.configuration.sub_agents import CircularReference
from agents_app.models import Agent, AgentQuerySet

MAX_AGENTS = 200  # in one action


class BulkResult(NamedTuple):
    """The result for one agent."""

    name: str
    done: bool
    sentence: str
    agent_id: str = ""  # of an agent that the page links to


BulkAction = Callable[[Caller, Agent], BulkResult]


def duplicate_agent(user: Caller, agent: Agent) -> BulkResult:
    """Copy the live version for the same owner, under an unused ID."""
    require_granted_role(user, Role.EDITOR, agent)
    if agent.active_version is None:
        return BulkResult(agent.name, False, "It has no live version.")
    copy = agent.duplicate(find_unused_id(f"{agent.pk[:110]}-copy"), agent.owner_id, agent.active_version)
    return BulkResult(agent.name, True, f"Duplicated as {copy.pk}.", copy.pk)


def delete_agent(user: Caller, agent: Agent) -> BulkResult:
    """Delete an agent with its history."""
    require_granted_role(user, Role.PUBLISHER, agent)
    agent.delete()
    return BulkResult(agent.name, True, "Deleted with its history.")


def publish_draft(user: Caller, agent: Agent, confirmed: Collection[str]) -> BulkResult:
    """Publish the draft, if its `live_and_draft` is among those that the user confirmed."""
    require_granted_role(user, Role.PUBLISHER, agent)
    if agent.head_version is None or not agent.has_draft:
        return BulkResult(agent.name, False, "It has no draft.")
    if live_and_draft(agent) not in confirmed:
        return BulkResult(agent.name, False, "The live version or the draft changed since you confirmed.")
    agent.head_version.activate_locked(agent)
    return BulkResult(agent.name, True, f"v{agent.head_version.version_number} is live.")


def live_and_draft(agent: Agent) -> str:
    """Return a value that identifies the live version and the draft of an agent, for a confirmation page."""
    return f"{agent.pk} {agent.active_version_id} {agent.head_version_id}"


def apply_to_each(agents: AgentQuerySet, user: Caller, ids: list[str], action: BulkAction) -> list[BulkResult]:
    """Apply an action to at most MAX_AGENTS agents. A failure of one does not affect the others."""
    return [apply_to_one(agents, user, agent_id, action) for agent_id in dict.fromkeys(ids[:MAX_AGENTS])]


def apply_to_one(agents: AgentQuerySet, user: Caller, agent_id: str, action: BulkAction) -> BulkResult:
    """Lock one agent and apply an action to it, in a transaction."""
    try:
        with transaction.atomic():
            return action(user, agents.with_role(user).get_locked(agent_id))
    except Agent.DoesNotExist:
        return BulkResult(agent_id, False, "It is no longer there.")
    except RoleRequired as error:
        return BulkResult(agent_id, False, str(error))
    except CircularReference as error:
        return BulkResult(agent_id, False, error.summary)
    except IntegrityError:
        return BulkResult(agent_id, False, "The ID of the duplicate was taken in the meantime. Try again.")


def find_unused_id(stem: str) -> str:
    """Return the stem, or the stem with the first number that makes it unused."""
    used = set(Agent.objects.filter(pk__startswith=stem).values_list("pk", flat=True))
    numbered = (f"{stem}-{number}" for number in range(2, len(used) + 3))
    return next(candidate for candidate in (stem, *numbered) if candidate not in used)
