"""API views of traces. A run is a trace."""

from __future__ import annotations

from typing import NoReturn

from django.db.models.functions import Coalesce
from django.http import HttpResponse
from rest_framework.request import Request

from agentcms.api.pagination import read_page
from agentcms.api.query_params import QueryParams
from agentcms.api.responses import json_response
from agentcms.api.views import JSONView
from agentcms.errors import ApiError, NotFound
from agentcms.wire.json_types import JSONObject
from agents_app.api.strict_requests import warning_payloads
from evals_app.api.representation import list_body
from evals_app.api.scores.trace_filters import read_order, read_run_filters, read_times
from evals_app.traces import RUN_SPAN_TYPE, RUN_STATUSES, root_span, spans_of_run, trajectory_of
from runs_app.api.lookups import get_readable_run
from runs_app.models import AgentRun
from runs_app.models.run_queryset import AgentRunQuerySet

LATER_MESSAGE = "This part of the observability API is not supported. Export traces with OpenTelemetry instead."
TRACE_ORDERS = {"startedAt": "created_at", "endedAt": "finished_at"}
LARGE_FIELDS = ("input", "output", "error", "attributes", "metadata")


def filter_traces(query: QueryParams, runs: AgentRunQuerySet) -> AgentRunQuerySet:
    """Filter runs as the published client filters traces."""
    runs = runs.filter(read_run_filters(query))
    if (status := query.text("status")) is not None:
        runs = runs.with_status(RUN_STATUSES.get(status, status))
    if (span_type := query.text("spanType")) is not None and span_type != RUN_SPAN_TYPE:
        runs = runs.none()
    began = read_times(query, "startedAt", "began") | read_times(query, "dateRange", "began")
    if began:
        runs = runs.annotate(began=Coalesce("started_at", "created_at")).filter(**began)
    return runs.filter(**read_times(query, "endedAt", "finished_at"))


class TracesView(JSONView):
    """The runs that the user may read, as the first spans of their traces, newest first."""

    def get(self, request: Request) -> HttpResponse:
        with QueryParams(request) as query:
            paging = query.paging(10)
            # Runs of sub-agents are spans in the trace of the first run.
            runs = filter_traces(query, AgentRun.objects.for_user(request.user).filter(parent=None))
            order = read_order(query, TRACE_ORDERS)
            # The protocol has these parameters. They have no effect here, which only a strict request refuses.
            unknown = query.check_unknown_names("filters", "pagination")
        # Large columns, of which a span has nothing.
        rows = runs.with_roles(request.user).defer("stored_configuration", "conversation").order_by(*order)

        def span_of(run: AgentRun) -> JSONObject:
            return self.visible_fields(root_span(run, str(run.pk), None, run.details_visible_to(request.user)))

        spans = read_page(rows, paging, span_of)
        return json_response(list_body("spans", spans, runs.count(), paging) | warning_payloads(unknown))

    def visible_fields(self, span: JSONObject) -> JSONObject:
        return span


class LightTracesView(TracesView):
    """The same without what may be large."""

    def visible_fields(self, span: JSONObject) -> JSONObject:
        return without_large_fields(span)


def without_large_fields(span: JSONObject) -> JSONObject:
    return {name: value for name, value in span.items() if name not in LARGE_FIELDS}


def get_spans(request: Request, trace_id: str) -> list[JSONObject]:
    """Return the spans of a run. Former members of the team see the run alone. Raise NotFound."""
    run = get_readable_run(request, trace_id)
    if not run.details_visible_to(request.user):
        return [root_span(run, trace_id, None, has_details=False)]
    return list(spans_of_run(run, trace_id))


class TraceView(JSONView):
    """A trace with all its spans."""

    def get(self, request: Request, trace_id: str) -> HttpResponse:
        return json_response({"traceId": trace_id, "spans": get_spans(request, trace_id)})


class LightTraceView(JSONView):
    """A trace without what may be large."""

    def get(self, request: Request, trace_id: str) -> HttpResponse:
        spans = get_spans(request, trace_id)
        return json_response({"traceId": trace_id, "spans": [*map(without_large_fields, spans)]})


class SpanView(JSONView):
    """A span of a trace."""

    def get(self, request: Request, trace_id: str, span_id: str) -> HttpResponse:
        span = next((span for span in get_spans(request, trace_id) if span["spanId"] == span_id), None)
        if span is None:
            raise NotFound(f"The trace has no span {span_id}.")
        return json_response({"span": span})


class TrajectoryView(JSONView):
    """The steps of a trace."""

    def get(self, request: Request, trace_id: str) -> HttpResponse:
        return json_response(trajectory_of(get_spans(request, trace_id)))


class UnsupportedView(JSONView):
    """The routes that are not supported."""

    def get(self, request: Request, **arguments: object) -> NoReturn:
        raise ApiError(501, LATER_MESSAGE, "not_implemented")

    def post(self, request: Request, **arguments: object) -> NoReturn:
        raise ApiError(501, LATER_MESSAGE, "not_implemented")

    def patch(self, request: Request, **arguments: object) -> NoReturn:
        raise ApiError(501, LATER_MESSAGE, "not_implemented")

    def delete(self, request: Request, **arguments: object) -> NoReturn:
        raise ApiError(501, LATER_MESSAGE, "not_implemented")
