"""API views of the calls that wait for people: lists, and one call."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from uuid import UUID

from django.db.models import F
from django.http import HttpResponse
from rest_framework.request import Request

from access_app.caller import Caller
from access_app.permissions import has_role_everywhere, owner_ids_for
from access_app.role import Role
from agentcms.api.pagination import page_payload
from agentcms.api.query_params import QueryParams
from agentcms.api.responses import json_response
from agentcms.api.views import JSONView
from agentcms.wire.timestamps import end_of_millisecond
from agents_app.api.lookups import agent_not_found
from agents_app.api.strict_requests import warning_payloads
from agents_app.models import Agent
from agents_app.registry import Kind, registry
from runs_app.api.approval_representation import approval_body, suspended_run_body
from runs_app.approvals.lookup import CallTree
from runs_app.models import AgentRun, PendingCall
from runs_app.models.pending_call import PendingCallQuerySet

APPROVALS_PER_PAGE = 50
SUSPENDED_RUNS_PER_PAGE = 100
DECIDED = "decided"  # every state but that of waiting calls
APPROVAL_STATES = (*PendingCall.State.values, DECIDED)


class ApprovalsView(JSONView):
    """List of the calls that the user may read: waiting ones, the oldest first, or decided ones, the latest first."""

    def get(self, request: Request) -> HttpResponse:
        with QueryParams(request) as query:
            paging = query.paging(APPROVALS_PER_PAGE)
            state = query.choice("state", APPROVAL_STATES, PendingCall.State.OPEN)
            agent_id = query.text("agentId")
            unknown = query.check_unknown_names()
        calls = calls_in_state(PendingCall.objects.readable_by(request.user), state)
        if agent_id is not None:
            calls = calls.filter(agent_key=agent_id)
        bodies = [approval_body(call) for call in calls[paging.start : paging.stop]]
        body = page_payload("approvals", bodies, calls.count(), paging.page, paging.per_page)
        return json_response(body | warning_payloads(unknown))


class SuspendedRunsView(JSONView):
    """List of the runs of an agent that wait for people, the latest first, with their waiting calls."""

    def get(self, request: Request, agent_id: str) -> HttpResponse:
        with QueryParams(request) as query:
            paging = query.paging(SUSPENDED_RUNS_PER_PAGE)
            thread, resource = query.text("threadId"), query.text("resourceId")
            since, until = query.timestamp("fromDate"), query.timestamp("toDate")
            unknown = query.check_unknown_names()
        require_visible_agent(request.user, agent_id)
        filters = {
            "thread__key": thread,
            "thread__resource_key": resource,
            "suspended_at__gte": since,
            "suspended_at__lte": end_of_millisecond(until) if until else None,
        }
        runs = AgentRun.objects.for_user(request.user).suspended().filter(agent_key=agent_id, parent=None)
        if not has_role_everywhere(request.user, Role.VIEWER):
            runs = runs.filter(owner_id__in=owner_ids_for(request.user))  # former members see no calls
        runs = runs.filter(**{name: value for name, value in filters.items() if value is not None})
        ordered = runs.select_related("thread").without_large_columns().order_by("-suspended_at", "-id")
        page = list(ordered[paging.start : paging.stop])
        calls = waiting_calls(page)
        bodies = [suspended_run_body(run, calls[run.pk]) for run in page]
        body = page_payload("runs", bodies, runs.count(), paging.page, paging.per_page)
        return json_response(body | warning_payloads(unknown))


def calls_in_state(calls: PendingCallQuerySet, state: str) -> PendingCallQuerySet:
    """Filter calls by state and order them: waiting ones by age, others by their decision."""
    if state == PendingCall.State.OPEN:
        return calls.waiting().order_by("created_at", "id")
    decided = calls.exclude(state=PendingCall.State.OPEN) if state == DECIDED else calls.filter(state=state)
    # In descending order, PostgreSQL lists nulls first and SQLite last.
    return decided.order_by(F("decided_at").desc(nulls_last=True), "-created_at", "-id")


def waiting_calls(runs: Sequence[AgentRun]) -> dict[UUID, list[tuple[str, PendingCall]]]:
    """Return the waiting calls of these runs and their sub-agents, by run, with their IDs in the events of the run.

    A run waits for none of the calls of its deferred tasks, which have their own IDs.
    """
    calls = PendingCall.objects.waiting().filter(root_id__in=[r.pk for r in runs]).order_by("created_at", "id")
    tree = CallTree(calls)
    shown_ids = {one.call.pk: one.shown_id for run in runs for one in tree.reachable_from(run.pk)}
    by_run: dict[UUID, list[tuple[str, PendingCall]]] = defaultdict(list)
    for call in calls:
        if call.kind != PendingCall.Kind.CHILD:
            by_run[call.root_id].append((shown_ids.get(call.pk, call.call_id), call))
    return by_run


def require_visible_agent(user: Caller, agent_id: str) -> None:
    """Raise NotFound unless the user may see an agent, which may be archived."""
    if not Agent.objects.for_user(user).filter(pk=agent_id).exists() and registry.get(Kind.AGENT, agent_id) is None:
        raise agent_not_found(agent_id)
