"""API views of the scores of traces. A run is a trace."""

from __future__ import annotations

from typing import Annotated

from django.db.models import QuerySet
from django.http import HttpResponse
from pydantic import BaseModel, Field
from rest_framework.request import Request

from agentcms.api.pagination import read_page
from agentcms.api.parsers import json_object_body
from agentcms.api.query_params import QueryParams
from agentcms.api.responses import json_response
from agentcms.api.views import JSONView
from agentcms.wire.json_types import JSONObject
from agents_app.api.idempotency import idempotent
from agents_app.api.strict_requests import read_named_fields, warning_payloads
from agents_app.configuration.schema import WIRE_CONFIG
from evals_app.api.representation import list_body
from evals_app.api.scorer_representation import observed_score_body
from evals_app.api.scores.creation import create_score
from evals_app.api.scores.lists import readable_scores
from evals_app.api.scores.trace_filters import read_order, read_run_filters, read_texts, read_times
from evals_app.scorers.results import ScoreValue
from runs_app.models import AgentRun, Score

SCORE_ORDERS = {"timestamp": "created_at", "score": "score"}


class TraceScore(BaseModel):
    """A score of a trace, whose ID is that of its run."""

    model_config = WIRE_CONFIG

    trace_id: Annotated[str, Field(min_length=1, max_length=64)]
    scorer_id: Annotated[str, Field(min_length=1, max_length=256)]
    score: ScoreValue
    reason: Annotated[str, Field(max_length=5000)] | None = None
    metadata: JSONObject | None = None


class TraceScoreBody(BaseModel):
    """A new score of a trace."""

    model_config = WIRE_CONFIG

    score: TraceScore


def filter_scores(query: QueryParams, scores: QuerySet[Score]) -> QuerySet[Score]:
    """Filter scores as the published client does."""
    of_runs = read_run_filters(query)
    if of_runs:
        scores = scores.filter(run__in=AgentRun.objects.filter(of_runs).order_by().values("pk"))
    if (scorers := read_texts(query, "scorerId")) is not None:
        scores = scores.filter(scorer__in=scorers)
    for name in ("source", "scoreSource"):
        if (source := query.text(name)) is not None:
            scores = scores.filter(source=source)
    return scores.filter(**read_times(query, "timestamp", "created_at"))


class ObservedScoresView(JSONView):
    """All scores of runs that the user may read. A new one names its run as a trace."""

    def get(self, request: Request) -> HttpResponse:
        with QueryParams(request) as query:
            paging = query.paging(10)
            scores = filter_scores(query, readable_scores(request)).order_by(*read_order(query, SCORE_ORDERS))
            unknown = query.check_unknown_names()
        bodies = read_page(scores, paging, observed_score_body)
        return json_response(list_body("scores", bodies, scores.count(), paging) | warning_payloads(unknown))

    @idempotent
    def post(self, request: Request) -> HttpResponse:
        fields, unknown = read_named_fields(request, json_object_body(request), TraceScoreBody)
        given = fields["score"]
        create_score(request, {**given, "runId": given["traceId"], "details": given.get("metadata")})
        return json_response({"success": True, "message": "The score was added."} | warning_payloads(unknown), 201)
