"""Take an agent under its lock for a caller: two statements, built once and sent at once."""

from __future__ import annotations

from functools import cache
from typing import Any

from django.db import DEFAULT_DB_ALIAS

from access_app.caller_params import CALLER, CallerKind, asked_by, stand_in
from agentcms.db.compiled_query import Prepared, at_once, columns
from agents_app.models import Agent, AgentQuerySet


@cache
def _version() -> Any:
    return Agent._meta.get_field("active_version").related_model


def _seen(caller: Any, agent_id: str) -> AgentQuerySet:
    return Agent.objects.for_user(caller).filter(pk=agent_id).order_by()


def _lock(kind: CallerKind, agent_id: str, **parameters: Any) -> Any:
    """The columns of the agent, and the role granted."""
    caller = stand_in(kind, **parameters)
    return _seen(caller, agent_id).with_role(caller).select_for_update(of=("self",))


def _live(kind: CallerKind, agent_id: str, **parameters: Any) -> Any:
    """The columns of its live version: for the caller too, or it would take longer where an agent is not theirs."""
    return _seen(stand_in(kind, **parameters), agent_id).values_list(*columns(_version(), "active_version__"))


LOCK = Prepared(_lock, agent_id=str, **CALLER)
LIVE = Prepared(_live, agent_id=str, **CALLER)


def held(user: Any, agent_id: str) -> Agent | None:
    """The agent with `granted` and its versions as `locked()` gives it, or None where the caller may not see it."""
    kind, asked = CallerKind.of(user), {"agent_id": agent_id, **asked_by(user)}
    # Not in one statement: one that waited for the lock sees other tables as they were before the wait.
    locked, live = at_once(LOCK.asked(kind, **asked), LIVE.asked(kind, **asked))
    if not (locked and live):
        return None
    *own, granted = locked[0]
    agent: Any = Agent.from_db(DEFAULT_DB_ALIAS, columns(Agent), own)
    agent.granted = granted
    if agent.active_version_id is not None:
        agent.active_version = _version().from_db(DEFAULT_DB_ALIAS, columns(_version()), live[0])
    agent.pair_versions()
    return agent
