"""The queries of every run and every page, compiled once per process. Building them takes longer than sending them."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.db.models import Exists, Q, QuerySet

from access_app.caller_params import CallerParam
from agentcms.db.statements.compiled_query import compiled_query
from agentcms.db.statements.parameters import json_array_items
from agents_app.models import Agent, AgentQuerySet
from runs_app.models import AgentRun, PendingCall, RunEvent
from runs_app.models.run_queryset import AgentRunQuerySet

MAX_EVENTS_PER_READ = 100  # an event has up to 200,000 characters of the result of a tool


@compiled_query
def agent_to_run(pointer: str, *, user: CallerParam, agent_id: str) -> AgentQuerySet:
    """Return an agent that the user may see with the version of a pointer, if it has a live version."""
    agents = Agent.objects.for_user(user).filter(pk=agent_id, active_version__isnull=False)
    return agents.order_by().select_related(pointer).only("name", "owner_id", "archived_at", pointer)


@compiled_query
def locked_agent_of_run(suspended_limit: int, *, agent_id: str, user_id: int) -> AgentQuerySet:
    """Lock an agent whose run is about to start. `has_many_suspended` says whether as many runs of the user wait."""
    suspended = suspended_runs(user_id)[suspended_limit - 1 : suspended_limit]
    # Not the key, which inserted rows with a foreign key to the agent lock: they need not wait.
    agents = Agent.objects.select_for_update(of=("self",), no_key=True).filter(pk=agent_id)
    return agents.order_by().only("pk", "archived_at").annotate(has_many_suspended=Exists(suspended))


def suspended_runs(user_id: int) -> AgentRunQuerySet:
    """Return the first runs of a user that wait for people."""
    return AgentRun.objects.filter(requested_by=user_id, parent=None, suspended_at__isnull=False).order_by()


@compiled_query
def leased_runs_of(*, user_id: int, agent_id: str) -> QuerySet[AgentRun, tuple[int | None, str]]:
    """Return the user and the agent of each unfinished run that counts for the limits of either."""
    runs = AgentRun.objects.leased().filter(parent=None, experiment_id=None)
    of_either = runs.filter(Q(requested_by=user_id) | Q(agent_key=agent_id))
    return of_either.order_by().values_list("requested_by_id", "agent_key")


@compiled_query
def locked_runs_of_holder(*, ids: list[UUID], holder: str) -> QuerySet[AgentRun, tuple[UUID, int, int | None]]:
    """Lock those of these runs that belong to a process. Return their IDs, fences and threads."""
    runs = AgentRun.objects.leased().filter(pk__in=json_array_items(ids, "uuid"), holder=holder)
    return runs.order_by("pk").select_for_update().values_list("pk", "fence", "thread_id")


@compiled_query
def cancel_requested_ids(*, holder: str) -> QuerySet[AgentRun, UUID]:
    """Return the IDs of the runs of a process that users have cancelled."""
    runs = AgentRun.objects.leased().filter(holder=holder, cancel_requested_at__isnull=False)
    return runs.order_by().values_list("pk", flat=True)


@compiled_query
def run_with_id(*, run_id: UUID) -> AgentRunQuerySet:
    """Return a run."""
    return AgentRun.objects.filter(pk=run_id).order_by()


@compiled_query
def chunks_of_run(*, run_id: UUID) -> QuerySet[RunEvent, Any]:
    """Return the chunks of a run in order."""
    return RunEvent.objects.filter(run=run_id).order_by("number").values_list("data", flat=True)


@compiled_query
def events_after(*, run_id: UUID, number: int) -> QuerySet[RunEvent, tuple[int, Any]]:
    """Return the numbers and chunks of the next events of a run."""
    events = RunEvent.objects.filter(run=run_id, number__gt=number).order_by("number")
    return events.values_list("number", "data")[:MAX_EVENTS_PER_READ]


@compiled_query
def calls_to_decide(limit: int, *, user: CallerParam) -> QuerySet[PendingCall, UUID]:
    """Return the IDs of the first calls that a user of the pages may decide. The role of an API key is not applied."""
    return PendingCall.objects.decidable_by(user).order_by().values_list("pk", flat=True)[:limit]
