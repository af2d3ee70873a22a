"""Pages of the scores that a user may read."""

from __future__ import annotations

from django.db.models import QuerySet
from django.http import HttpResponse
from rest_framework.request import Request

from access_app.permissions import owner_ids_for
from agentcms.api.pagination import read_page
from agentcms.api.query_params import QueryParams
from agentcms.api.responses import json_response
from agents_app.api.strict_requests import warning_payloads
from evals_app.api.representation import list_body
from evals_app.api.scorer_representation import score_body
from runs_app.models import AgentRun, Score


def readable_scores(request: Request) -> QuerySet[Score]:
    """Return the scores of the runs of which the user may see the details."""
    runs = AgentRun.objects.for_user(request.user)
    scores = Score.objects.filter(run__in=runs).select_related("run", "created_by")
    scores = scores.defer("run__stored_configuration", "run__conversation")  # large, and a score has nothing of them
    if not request.user.is_superuser:
        # Former members of a team still read their own runs, but not the scores of them.
        scores = scores.filter(run__owner_id__in=["", *owner_ids_for(request.user)])
    return scores.order_by("-created_at", "-pk")


def list_scores(request: Request, scores: QuerySet[Score], *filters: str) -> HttpResponse:
    """Return a page of scores. `filters` are the names of further parameters."""
    with QueryParams(request) as query:
        paging = query.paging(10)
        values = {name: query.text(name) for name in filters}
        unknown = query.check_unknown_names()
    if values.get("entityId"):
        scores = scores.filter(run__agent_key=values["entityId"])
    # Only runs have scores in rows, and only agents have runs.
    if values.get("entityType", "AGENT") not in (None, "AGENT"):
        scores = scores.none()
    if values.get("source"):
        scores = scores.filter(source=values["source"])
    bodies = read_page(scores, paging, score_body)  # with the question and the answer of each run
    return json_response(list_body("scores", bodies, scores.count(), paging) | warning_payloads(unknown))
