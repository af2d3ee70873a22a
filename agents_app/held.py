"""Take an agent under its lock for a caller: two statements, both built once."""

from __future__ import annotations

from functools import cache
from typing import Any

from django.db import DEFAULT_DB_ALIAS

from access_app.callers import CALLER, Kind, asked_by, stand_in
from agentcms.prepared import Prepared
from agents_app.models import Agent


@cache
def _columns(model: Any, path: str = "") -> list[str]:
    return [f"{path}{field.attname}" for field in model._meta.concrete_fields]


def _lock(kind: Kind, agent_id: str, **parameters: Any) -> Any:
    caller = stand_in(kind, **parameters)
    agents = Agent.objects.for_user(caller).with_role(caller).filter(pk=agent_id).order_by()
    return agents.select_for_update().values_list(*_columns(Agent), "granted")


def _live(variant: Any, agent_id: str) -> Any:
    version: Any = Agent._meta.get_field("active_version").related_model
    return Agent.objects.filter(pk=agent_id).order_by().values_list(*_columns(version, "active_version__"))


LOCK = Prepared(_lock, agent_id=str, **CALLER)
LIVE = Prepared(_live, agent_id=str)


def held(user: Any, agent_id: str) -> Agent | None:
    """The agent with `granted` and its versions as `locked()` gives it, or None where the caller may not see it."""
    found = LOCK(Kind.of(user), agent_id=agent_id, **asked_by(user))
    if not found:
        return None
    *own, granted = found[0]
    agent: Any = Agent.from_db(DEFAULT_DB_ALIAS, _columns(Agent), own)
    agent.granted = granted
    if agent.active_version_id is not None:
        version: Any = Agent._meta.get_field("active_version").related_model
        agent.active_version = version.from_db(DEFAULT_DB_ALIAS, _columns(version), LIVE(agent_id=agent_id)[0])
    agent.pair_versions()
    return agent
