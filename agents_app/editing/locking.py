"""Take an agent under its lock for a caller: two statements, built once and sent at once."""

from __future__ import annotations

from functools import cache
from typing import Any

from django.db import DEFAULT_DB_ALIAS

from access_app.caller_params import CALLER_PARAMS, CallerKind, caller_params, placeholder_caller
from agentcms.db.compiled_query import CompiledQuery, model_columns, run_together
from agents_app.models import Agent, AgentQuerySet


@cache
def _version() -> Any:
    return Agent._meta.get_field("active_version").related_model


def _seen(caller: Any, agent_id: str) -> AgentQuerySet:
    return Agent.objects.for_user(caller).filter(pk=agent_id).order_by()


def _lock(kind: CallerKind, agent_id: str, **parameters: Any) -> Any:
    """The columns of the agent, and the role granted."""
    caller = placeholder_caller(kind, **parameters)
    return _seen(caller, agent_id).with_role(caller).select_for_update(of=("self",))


def _live(kind: CallerKind, agent_id: str, **parameters: Any) -> Any:
    """The columns of its live version: for the caller too, or it would take longer where an agent is not theirs."""
    return _seen(placeholder_caller(kind, **parameters), agent_id).values_list(
        *model_columns(_version(), "active_version__")
    )


LOCK_QUERY = CompiledQuery(_lock, agent_id=str, **CALLER_PARAMS)
LIVE_VERSION_QUERY = CompiledQuery(_live, agent_id=str, **CALLER_PARAMS)


def lock_agent_for(user: Any, agent_id: str) -> Agent | None:
    """Lock an agent for a user and load its live version in one round trip. Return None if the user may not see it."""
    kind, asked = CallerKind.of(user), {"agent_id": agent_id, **caller_params(user)}
    # Not in one statement: one that waited for the lock sees other tables as they were before the wait.
    locked, live = run_together(LOCK_QUERY.bind(kind, **asked), LIVE_VERSION_QUERY.bind(kind, **asked))
    if not (locked and live):
        return None
    *own, granted = locked[0]
    agent: Any = Agent.from_db(DEFAULT_DB_ALIAS, model_columns(Agent), own)
    agent.granted = granted
    if agent.active_version_id is not None:
        agent.active_version = _version().from_db(DEFAULT_DB_ALIAS, model_columns(_version()), live[0])
    agent.share_live_head()
    return agent
