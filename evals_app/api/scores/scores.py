"""API views of the scores of runs, experiments, scorers and agents."""

from __future__ import annotations

from django.http import HttpResponse
from rest_framework.request import Request

from access_app.permissions import require_role
from access_app.role import Role
from agentcms.api.pagination import PageSize, in_parts, text_length
from agentcms.api.parsers import json_object_body
from agentcms.api.query_params import QueryParams
from agentcms.api.responses import json_response
from agentcms.api.views import JSONView
from agentcms.errors import NotFound
from agentcms.ids import parse_uuid
from agentcms.wire.json_types import JSONMapping, JSONObject
from agentcms.wire.unknown_names import find_unknown_names, wire_names
from agents_app.api.idempotency import idempotent_by_reference, referring_response
from agents_app.api.strict_requests import checking_names, warning_payloads
from agents_app.configuration.schema import validate_fields
from agents_app.models import Agent
from evals_app.api.representation import list_body
from evals_app.api.scorer_representation import experiment_score_body, score_body
from evals_app.api.scores.creation import ScoreBody, create_score
from evals_app.api.scores.lists import list_scores, readable_scores
from evals_app.experiments.scoring import usable_scorers
from evals_app.models import Experiment
from evals_app.quality.experiment_scores import count_scores, places_of_scores, read_scores
from runs_app.api.lookups import get_readable_run


def respond_with_score(request: Request, reference: JSONMapping) -> HttpResponse:
    """Return the score that a request has created. Raise NotFound and RoleRequired."""
    score = readable_scores(request).filter(pk=reference["score"]).first()
    if score is None:
        raise NotFound("The score of this request was not found")
    require_role(request.user, Role.EDITOR, score.run.owner_id)
    return json_response({"score": score_body(score)} | reference["more"])


class ScoresView(JSONView):
    """The creation of a score."""

    @idempotent_by_reference(respond_with_score)
    def post(self, request: Request) -> HttpResponse:
        body = json_object_body(request)
        # The published client sends the fields inside a member `score`, others send them at the top.
        nested = body.get("score")
        given = nested if isinstance(nested, dict) else body
        inside = find_unknown_names(given, wire_names(ScoreBody), "score" if given is nested else "")
        with checking_names(request, {}, inside=inside) as names:
            validate_fields(ScoreBody, given)
        score = create_score(request, given)
        more = warning_payloads(names.unknown)
        return referring_response({"score": score_body(score)} | more, {"score": score.pk, "more": more}, 201)


class RunScoresView(JSONView):
    """The scores of a run, or those of an experiment by its ID."""

    def get(self, request: Request, run_id: str) -> HttpResponse:
        key = parse_uuid(run_id)
        experiment = Experiment.objects.for_user(request.user).filter(pk=key).first() if key else None
        if experiment is not None:
            return list_experiment_scores(request, experiment)
        run = get_readable_run(request, run_id)
        return list_scores(request, readable_scores(request).filter(run=run))


def list_experiment_scores(request: Request, experiment: Experiment) -> HttpResponse:
    """Return a page of the scores of all results of an experiment, the newest first."""
    with QueryParams(request) as query:
        paging = query.paging(10)
        unknown = query.check_unknown_names()
    bodies: list[JSONObject] = []
    size = PageSize()
    for part in in_parts(places_of_scores(experiment, paging.start, paging.stop)):
        for score in read_scores(experiment, part):
            bodies.append(experiment_score_body(experiment, score))
            size.add(text_length(bodies[-1]))
    return json_response(list_body("scores", bodies, count_scores(experiment), paging) | warning_payloads(unknown))


class ScorerScoresView(JSONView):
    """The scores by a scorer."""

    def get(self, request: Request, scorer_id: str) -> HttpResponse:
        if scorer_id not in usable_scorers(request.user):
            raise NotFound(f"Scorer {scorer_id} not found.")
        scores = readable_scores(request).filter(scorer=scorer_id)
        return list_scores(request, scores, "entityId", "entityType", "source")


class EntityScoresView(JSONView):
    """The scores of the answers of an agent."""

    def get(self, request: Request, entity_type: str, entity_id: str) -> HttpResponse:
        is_agent = entity_type.upper() == "AGENT"
        if not is_agent or not Agent.objects.for_user(request.user).filter(pk=entity_id).exists():
            raise NotFound(f"{entity_type} {entity_id} not found.")
        return list_scores(request, readable_scores(request).filter(run__agent_key=entity_id), "source")
