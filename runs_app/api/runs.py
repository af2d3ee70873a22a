"""API views of runs: list, read, stream and cancel."""

from __future__ import annotations

from django.http import HttpResponse, StreamingHttpResponse
from rest_framework.request import Request

from access_app.permissions import can_have_role
from access_app.role import Role, RoleRequired
from agentcms.api.pagination import page_payload
from agentcms.api.parsers import json_object_body
from agentcms.api.query_params import QueryParams
from agentcms.api.responses import json_response
from agentcms.api.views import JSONView
from agents_app.api.strict_requests import warning_payloads
from runs_app.api.lookups import get_readable_run
from runs_app.api.representation import event_body, redacted_event_body, run_body, run_detail_body, run_step_body
from runs_app.api.stream_responses import EventStreamNegotiation, last_event_id, stream_head_response, stream_response
from runs_app.engine import run_ends
from runs_app.events.redaction import ANSWER_TYPES
from runs_app.events.streams import StreamSlot
from runs_app.models import AgentRun, RunEvent

EVENTS_PER_PAGE = 1000
STEPS_PER_PAGE = 100


class RunsView(JSONView):
    """List of the runs that the user may read, newest first. Child runs are included on request."""

    def get(self, request: Request) -> HttpResponse:
        with QueryParams(request) as query:
            paging = query.paging(50)
            agent_id = query.text("agentId")
            status = query.choice("status", ("all", *AgentRun.Status.values), "all")
            children = query.boolean("children")
            unknown = query.check_unknown_names()
        runs = AgentRun.objects.for_user(request.user)
        if not children:
            runs = runs.filter(parent=None)
        if agent_id is not None:
            runs = runs.filter(agent_key=agent_id)
        if status != "all":
            runs = runs.with_status(status)
        page = runs.with_roles(request.user).without_large_columns()[paging.start : paging.stop]
        bodies = [run_body(run, request.user) for run in page]
        body = page_payload("runs", bodies, runs.count(), paging.page, paging.per_page)
        return json_response(body | warning_payloads(unknown))


class RunDetailView(JSONView):
    """One run."""

    def get(self, request: Request, run_id: str) -> HttpResponse:
        return json_response(run_detail_body(get_readable_run(request, run_id), request.user))


class EventsView(JSONView):
    """The stored events of a run."""

    def get(self, request: Request, run_id: str) -> HttpResponse:
        with QueryParams(request) as query:
            after, per_page = query.integer("after", 0), query.integer("perPage", EVENTS_PER_PAGE, 1, EVENTS_PER_PAGE)
            unknown = query.check_unknown_names()
        run = get_readable_run(request, run_id)
        stored, body = run.events.filter(number__gt=after), event_body
        if not run.details_visible_to(request.user):
            stored, body = stored.filter(data__type__in=ANSWER_TYPES), redacted_event_body
        rows: list[RunEvent] = list(stored[: per_page + 1])
        events = [body(event) for event in rows[:per_page]]
        payload = {"events": events, "status": run.status, "hasMore": len(rows) > per_page}
        return json_response(payload | warning_payloads(unknown))


class StepsView(JSONView):
    """The steps of a durable run, in order, with their results. Former members of the team see none."""

    def get(self, request: Request, run_id: str) -> HttpResponse:
        with QueryParams(request) as query:
            paging = query.paging(STEPS_PER_PAGE)
            unknown = query.check_unknown_names()
        run = get_readable_run(request, run_id)
        steps = run.steps.order_by("started_at", "key") if run.details_visible_to(request.user) else run.steps.none()
        bodies = [run_step_body(step) for step in steps[paging.start : paging.stop]]
        body = page_payload("steps", bodies, steps.count(), paging.page, paging.per_page)
        return json_response(body | warning_payloads(unknown))


class StreamView(JSONView):
    """Stream of the events of a run, after the one that `Last-Event-ID` names."""

    content_negotiation_class = EventStreamNegotiation

    def get(self, request: Request, run_id: str) -> StreamingHttpResponse:
        with QueryParams(request) as query:
            after = query.integer("after", 0)
        run = get_readable_run(request, run_id)
        after = last_event_id(request, after)
        redacted = not run.details_visible_to(request.user)
        return stream_response(run.pk, after, StreamSlot(request.user), numbered=True, redacted=redacted)

    def head(self, request: Request, run_id: str) -> HttpResponse:
        get_readable_run(request, run_id)
        return stream_head_response()


class CancelRunView(JSONView):
    """Cancellation of a run by any user who may read it. A finished run stays unchanged."""

    def post(self, request: Request, run_id: str) -> HttpResponse:
        json_object_body(request)
        run = get_readable_run(request, run_id)
        if not can_have_role(request.user, Role.EDITOR):  # the role of the API key
            raise RoleRequired(Role.EDITOR, run.owner_id)
        run_ends.cancel_run(run.pk)
        return json_response(run_detail_body(get_readable_run(request, run_id), request.user))
