"""Actions on several agents. Each agent has a transaction and a result of its own."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import nullcontext
from typing import NamedTuple

from django.db import IntegrityError, OperationalError, connection, transaction

from access_app.caller import Caller
from access_app.permissions import granted_covers, require_granted_role
from access_app.role import Role, RoleRequired
from agentcms.db.lock_timeout import is_lock_timeout, no_lock_wait
from agentcms.wire.json_types import JSONObject
from agents_app.configuration.schema import ConfigError
from agents_app.configuration.sub_agents import (
    dependents_payloads,
    describe_dependents,
    find_dependents_of_each,
    order_dependents_first,
    sub_agents_among,
)
from agents_app.editing.archive_guard import AgentArchived
from agents_app.editing.archiving import archive_locked, unarchive_locked
from agents_app.editing.new_ids import copy_id, find_unused_id
from agents_app.editing.version_refusals import MoveRefused
from agents_app.models import Agent, AgentQuerySet

MAX_SELECTED_AGENTS = 200  # in one action
NOTHING_SELECTED_MESSAGE = "Select at least one agent."
BUSY_MESSAGE = "Another change holds it up. Try again."


class BulkResult(NamedTuple):
    """The result for one agent."""

    name: str
    done: bool
    sentence: str
    agent_id: str = ""  # of an agent that the page links to
    warning: str = ""  # about what was done


BulkAction = Callable[[Caller, Agent], BulkResult]


def duplicate_agent(user: Caller, agent: Agent) -> BulkResult:
    """Copy the live version for the same owner, under an unused ID."""
    require_granted_role(user, Role.EDITOR, agent)
    if agent.active_version is None:
        return BulkResult(agent.name, False, "It has no live version.")
    copy = agent.duplicate(find_unused_id(copy_id(agent)), agent.owner_id, agent.active_version)
    return BulkResult(agent.name, True, f"Duplicated as {copy.pk}.", copy.pk)


def delete_agent(user: Caller, agent: Agent, confirmed: Collection[str] = ()) -> BulkResult:
    """Delete an agent, unless others use it and its ID is not among those that the user confirmed."""
    require_granted_role(user, Role.PUBLISHER, agent)
    if reason := left_out_reason(user, agent, confirmed):
        return BulkResult(agent.name, False, reason)
    agent.delete()
    return BulkResult(agent.name, True, "Moved to the trash.")


def archive_agent(user: Caller, agent: Agent, confirmed: Collection[str] = ()) -> BulkResult:
    """Archive an agent, unless others use it and its ID is not among those that the user confirmed."""
    require_granted_role(user, Role.PUBLISHER, agent)
    if reason := left_out_reason(user, agent, confirmed):
        return BulkResult(agent.name, False, reason)
    archived = archive_locked(agent)
    return BulkResult(agent.name, archived, "Archived." if archived else "It is archived already.", agent.pk)


def unarchive_agent(user: Caller, agent: Agent) -> BulkResult:
    """Unarchive an agent."""
    require_granted_role(user, Role.PUBLISHER, agent)
    unarchived = unarchive_locked(agent)
    return BulkResult(agent.name, unarchived, "Unarchived." if unarchived else "It is not archived.", agent.pk)


def left_out_reason(user: Caller, agent: Agent, confirmed: Collection[str]) -> str:
    """Return why an agent is left out of an action, or a blank text if nobody uses it or the user confirmed it."""
    if agent.pk in confirmed or not (users := describe_dependents(user, agent)):
        return ""
    return f"Left out: it is a sub-agent of {users}."


class Selection(NamedTuple):
    """The agents of an action that takes them away from those that use them."""

    unused: list[Agent]
    used: list[tuple[Agent, JSONObject]]  # with the dependents that stay
    forbidden: list[Agent]  # the user lacks the role
    missing: list[str]  # the IDs of agents that were deleted, or that the user may not see any more
    confirmed: Collection[str]

    @property
    def agent_count(self) -> int:
        """The number of agents that the action takes."""
        return len(self.unused) + sum(agent.pk in self.confirmed for agent, _ in self.used)

    @property
    def possible_count(self) -> int:
        """The number of agents that the action takes if the user confirms all that are used."""
        return len(self.unused) + len(self.used)


def describe_selection(
    user: Caller, agents: AgentQuerySet, ids: Sequence[str], confirmed: Collection[str]
) -> Selection:
    """Group the first MAX_SELECTED_AGENTS agents by what an action may do. `agents` are those that the user may see.

    An agent counts as used if any of its dependents stays: one that is not selected or is left out itself.
    """
    named = ids[:MAX_SELECTED_AGENTS]
    chosen = list(agents.with_role(user).with_ids(named).order_by("name", "pk"))
    visible = {agent.pk for agent in chosen}
    allowed = {agent.pk: agent for agent in chosen if granted_covers(user, Role.PUBLISHER, agent.granted)}
    dependents = find_dependents_of_each(allowed)
    leaving = allowed.keys() - find_left_out(allowed, dependents, confirmed)
    payloads = dependents_payloads(user, {pk: ids - leaving for pk, ids in dependents.items()})
    used = {pk: payload for pk, payload in payloads.items() if payload["total"]}
    return Selection(
        unused=[agent for pk, agent in allowed.items() if pk not in used],
        used=[(agent, used[pk]) for pk, agent in allowed.items() if pk in used],
        forbidden=[agent for agent in chosen if agent.pk not in allowed],
        missing=[agent_id for agent_id in dict.fromkeys(named) if agent_id not in visible],
        confirmed=confirmed,
    )


def find_left_out(
    agents: Mapping[str, Agent], dependents: Mapping[str, Collection[str]], confirmed: Collection[str]
) -> set[str]:
    """Return the IDs of the agents that an action leaves out: those that an agent which stays uses.

    An agent outside the selection stays, and so does one that is left out itself. `dependents` has the IDs of those
    of each agent.
    """
    sub_agents = sub_agents_among(agents)
    pending = [pk for pk in agents if not agents.keys() >= {*dependents[pk]}]
    left_out: set[str] = set()
    while pending:
        agent_id = pending.pop()
        if agent_id not in confirmed and agent_id not in left_out:
            left_out.add(agent_id)
            pending += sub_agents.get(agent_id, ())
    return left_out


def publish_draft(user: Caller, agent: Agent, confirmed: Collection[str]) -> BulkResult:
    """Publish the draft, if its `live_and_draft` is among those that the user confirmed."""
    require_granted_role(user, Role.PUBLISHER, agent)
    if agent.head_version is None or not agent.has_draft:
        return BulkResult(agent.name, False, "It has no draft.")
    if live_and_draft(agent) not in confirmed:
        return BulkResult(agent.name, False, "The live version or the draft changed since you confirmed.")
    agent.head_version.activate_locked(agent)
    sentence = f"v{agent.head_version.version_number} is live."
    return BulkResult(agent.name, True, sentence, warning=agent.gate_warning)


def live_and_draft(agent: Agent) -> str:
    """Return a value that identifies the live version and the draft of an agent, for a confirmation page."""
    return f"{agent.pk} {agent.active_version_id} {agent.head_version_id}"


def apply_to_each(agents: AgentQuerySet, user: Caller, ids: list[str], action: BulkAction) -> list[BulkResult]:
    """Apply an action to at most MAX_SELECTED_AGENTS agents. A failure of one does not affect the others."""
    return [*apply_in_turn(agents, user, dict.fromkeys(ids[:MAX_SELECTED_AGENTS]), action).values()]


def apply_to_dependents_first(
    agents: AgentQuerySet, user: Caller, ids: list[str], action: BulkAction
) -> list[BulkResult]:
    """Apply an action like `apply_to_each`, to an agent after those that use it. The results have the given order."""
    chosen = [*dict.fromkeys(ids[:MAX_SELECTED_AGENTS])]
    # Once all that use an agent are gone, nobody uses it, and it needs no confirmation of its own.
    results = apply_in_turn(agents, user, order_dependents_first(chosen), action)
    return [results[agent_id] for agent_id in chosen]


def apply_in_turn(
    agents: AgentQuerySet, user: Caller, ids: Iterable[str], action: BulkAction
) -> dict[str, BulkResult]:
    """Apply an action to agents in this order. One that others have locked for too long is left out.

    Only the first such agent is waited for, or the waits would add up to more than a request may take.
    """
    results: dict[str, BulkResult] = {}
    is_busy = False
    for agent_id in ids:
        results[agent_id] = BulkResult(agent_id, False, BUSY_MESSAGE)
        if is_busy and connection.vendor == "sqlite":  # it has one lock for all rows
            continue
        try:
            with no_lock_wait() if is_busy else nullcontext():
                results[agent_id] = apply_to_one(agents, user, agent_id, action)
        except OperationalError as error:
            if not is_lock_timeout(error):
                raise
            is_busy = True
    return results


def apply_to_one(agents: AgentQuerySet, user: Caller, agent_id: str, action: BulkAction) -> BulkResult:
    """Lock one agent and apply an action to it, in a transaction."""
    name = agent_id  # until the agent is read
    try:
        with transaction.atomic():
            agent = agents.with_role(user).get_locked(agent_id)
            name = agent.name
            return action(user, agent)
    except Agent.DoesNotExist:
        return BulkResult(name, False, "It is no longer there.")
    except (RoleRequired, AgentArchived) as error:
        return BulkResult(name, False, str(error))
    except MoveRefused as error:
        return BulkResult(name, False, error.summary)
    except ConfigError as error:  # an earlier release, or a fixture, stored what is not valid now
        return BulkResult(name, False, f"Its configuration is not valid: {' '.join(error.messages)}")
    except IntegrityError:
        return BulkResult(name, False, "The ID of the duplicate was taken in the meantime. Try again.")
