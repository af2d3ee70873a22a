"""The lock of an agent for a caller, by two compiled queries that are sent together."""

from __future__ import annotations

from typing import Any

from django.db import DEFAULT_DB_ALIAS
from django.db.models import Model, QuerySet

from access_app.caller import Caller
from access_app.caller_params import CALLER_PARAMS, CallerKind, caller_params, placeholder_caller
from agentcms.db.compiled_query import CompiledQuery, model_columns, run_together
from agents_app.models import Agent, AgentQuerySet

LIVE_VERSION = Agent.active_version.field


def _visible(caller: Caller, agent_id: str) -> AgentQuerySet:
    return Agent.objects.for_user(caller).filter(pk=agent_id).order_by()


def _version_model() -> type[Model]:
    model: type[Model] = LIVE_VERSION.related_model
    return model


def _lock(kind: CallerKind, agent_id: str, user_id: int) -> AgentQuerySet:
    caller = placeholder_caller(kind, user_id)
    return _visible(caller, agent_id).with_role(caller).select_for_update(of=("self",))


def _live(kind: CallerKind, agent_id: str, user_id: int) -> QuerySet[Agent, Any]:
    # For the caller too: it must not take longer for an agent of somebody else.
    agents = _visible(placeholder_caller(kind, user_id), agent_id)
    return agents.values_list(*model_columns(_version_model(), "active_version__"))


LOCK_QUERY = CompiledQuery(_lock, agent_id=str, **CALLER_PARAMS)
LIVE_VERSION_QUERY = CompiledQuery(_live, agent_id=str, **CALLER_PARAMS)


def lock_agent_for(user: Caller, agent_id: str) -> Agent | None:
    """Lock an agent for a user and load its live version in one round trip. Return None if the user may not see it."""
    kind, params = CallerKind.of(user), {"agent_id": agent_id, **caller_params(user)}
    # Two statements: one that waited for the lock would read other tables as they were before the wait.
    locked, live = run_together(LOCK_QUERY.bind(kind, **params), LIVE_VERSION_QUERY.bind(kind, **params))
    if not (locked and live):
        return None
    *values, granted = locked[0]
    agent = Agent.from_db(DEFAULT_DB_ALIAS, model_columns(Agent), values)
    agent.granted = granted
    if agent.active_version_id is not None:
        model = _version_model()
        LIVE_VERSION.set_cached_value(agent, model.from_db(DEFAULT_DB_ALIAS, model_columns(model), live[0]))
    agent.share_live_head()
    return agent
