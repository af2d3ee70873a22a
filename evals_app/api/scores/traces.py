"""API views of the scores of traces. A run is a trace."""

from __future__ import annotations

from typing import Annotated

from django.http import HttpResponse
from pydantic import BaseModel, Field
from rest_framework.request import Request

from agentcms.api.parsers import json_object_body
from agentcms.api.responses import json_response
from agentcms.api.views import JSONView
from agentcms.wire.json_types import JSONObject
from agents_app.api.idempotency import idempotent
from agents_app.api.strict_requests import read_named_fields, warning_payloads
from agents_app.configuration.schema import WIRE_CONFIG
from evals_app.api.scores.creation import create_score
from evals_app.api.scores.lists import list_scores, readable_scores
from evals_app.scorers.results import ScoreValue


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


class ObservedScoresView(JSONView):
    """All scores of runs that the user may read. A new one names its run as a trace."""

    def get(self, request: Request) -> HttpResponse:
        return list_scores(request, readable_scores(request), "entityId", "entityType", "source")

    @idempotent
    def post(self, request: Request) -> HttpResponse:
        fields, unknown = read_named_fields(request, json_object_body(request), TraceScoreBody)
        given = fields["score"]
        create_score(request, {**given, "runId": given["traceId"], "details": given.get("metadata")})
        return json_response({"success": True, "message": "The score was added."} | warning_payloads(unknown), 201)
