"""Take an agent under its lock for a caller: one statement, built once, and seldom a second."""

from __future__ import annotations

from functools import cache
from typing import Any

from django.db import DEFAULT_DB_ALIAS

from access_app.callers import CALLER, CallerKind, asked_by, stand_in
from agentcms.prepared import Prepared
from agents_app.models import Agent


@cache
def _columns(model: Any, path: str = "") -> list[str]:
    return [f"{path}{field.attname}" for field in model._meta.concrete_fields]


@cache
def _version() -> Any:
    return Agent._meta.get_field("active_version").related_model


def _lock(kind: CallerKind, agent_id: str, **parameters: Any) -> Any:
    """The columns of the agent, the role granted, and the columns of its live version."""
    caller = stand_in(kind, **parameters)
    agents = Agent.objects.for_user(caller).with_role(caller).filter(pk=agent_id).order_by()
    return agents.select_related("active_version").select_for_update(of=("self",))


def _live(variant: Any, agent_id: str) -> Any:
    return Agent.objects.filter(pk=agent_id).order_by().values_list(*_columns(_version(), "active_version__"))


LOCK = Prepared(_lock, agent_id=str, **CALLER)
LIVE = Prepared(_live, agent_id=str)


def held(user: Any, agent_id: str) -> Agent | None:
    """The agent with `granted` and its versions as `locked()` gives it, or None where the caller may not see it."""
    found = LOCK(CallerKind.of(user), agent_id=agent_id, **asked_by(user))
    if not found:
        return None
    own = len(_columns(Agent))
    agent: Any = Agent.from_db(DEFAULT_DB_ALIAS, _columns(Agent), found[0][:own])
    agent.granted = found[0][own]
    if agent.active_version_id is not None:
        agent.active_version = live(agent, found[0][own + 1 :])
    agent.pair_versions()
    return agent


def live(agent: Agent, read: tuple[Any, ...]) -> Any:
    """The live version, from what was read of it with the agent.

    A statement that waited for the lock sees other tables as they were before the wait: where live moved meanwhile it
    found no version to go with the agent, and the version is read now. What may be changed of a version, its name,
    message and pin, can be that of before the wait.
    """
    columns = _columns(_version())
    version = _version().from_db(DEFAULT_DB_ALIAS, columns, read)
    if version.pk != agent.active_version_id:
        version = _version().from_db(DEFAULT_DB_ALIAS, columns, LIVE(agent_id=agent.pk)[0])
    return version
