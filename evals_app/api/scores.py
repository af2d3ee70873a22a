"""API views of scores, and of the scorers that agents can use."""

from __future__ import annotations

from typing import Annotated

from django.db.models import QuerySet
from django.http import HttpResponse
from pydantic import BaseModel, Field
from rest_framework.request import Request

from access_app.permissions import owner_ids_for, require_role
from access_app.role import Role
from agentcms.api.parsers import json_object_body
from agentcms.api.query_params import QueryParams
from agentcms.api.responses import json_response
from agentcms.api.views import JSONView
from agentcms.errors import NotFound
from agentcms.ids import parse_uuid
from agentcms.wire.unknown_names import find_unknown_names, wire_names
from agents_app.api.idempotency import idempotent
from agents_app.api.unknown_keys import checking_names, warning_payloads
from agents_app.configuration.schema import WIRE_CONFIG, JSONObject, validate_fields
from agents_app.models import Agent
from agents_app.registry import Entry, Kind, registry
from evals_app.api.representation import paged
from evals_app.api.scorer_representation import experiment_score_body, score_body, usable_scorer_body
from evals_app.models import Experiment
from evals_app.quality.experiment_scores import count_scores, page_of_scores
from evals_app.scorers.results import ScoreValue
from runs_app.api.lookups import get_readable_run
from runs_app.models import AgentRun, Score


class ScoreBody(BaseModel):
    """A score that a person or a program gives an answer."""

    model_config = WIRE_CONFIG

    run_id: Annotated[str, Field(max_length=64)]
    scorer_id: Annotated[str, Field(min_length=1, max_length=256)]
    score: ScoreValue | None = None
    reason: Annotated[str, Field(max_length=5000)] | None = None
    label: Annotated[str, Field(max_length=64)] | None = None
    details: JSONObject | None = None


def usable_scorers(request: Request) -> dict[str, Entry]:
    """Return the scorers that the user may see: those in code, the shared ones and those of the user's teams."""
    owners = {"", *owner_ids_for(request.user)}
    is_superuser = bool(request.user.is_superuser)
    entries = registry.selectable(Kind.SCORER)
    return {entry.key: entry for entry in entries if is_superuser or entry.owner_id in owners}


def agents_by_scorer(request: Request) -> dict[str, list[tuple[str, str]]]:
    """Return the agents of each scorer that the user may see."""
    rows = Agent.objects.for_user(request.user).exclude(scorers=None).values_list("pk", "name", "scorers")
    result: dict[str, list[tuple[str, str]]] = {}
    for key, name, scorers in rows:
        for scorer in scorers or {}:
            result.setdefault(scorer, []).append((key, name))
    return result


def readable_scores(request: Request) -> QuerySet[Score]:
    """Return the scores of the runs of which the user may see the details."""
    runs = AgentRun.objects.for_user(request.user)
    scores = Score.objects.filter(run__in=runs).select_related("run", "created_by")
    if not request.user.is_superuser:
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
    if values.get("entityType", "AGENT") not in (None, "AGENT"):
        scores = scores.none()
    if values.get("source"):
        scores = scores.filter(source=values["source"])
    bodies = [score_body(score) for score in scores[paging.start : paging.stop]]
    return json_response(paged("scores", bodies, scores.count(), paging) | warning_payloads(unknown))


class UsableScorersView(JSONView):
    """The scorers that agents can use, by key."""

    def get(self, request: Request) -> HttpResponse:
        agents = agents_by_scorer(request)
        entries = usable_scorers(request)
        return json_response({key: usable_scorer_body(entry, agents.get(key, [])) for key, entry in entries.items()})


class UsableScorerView(JSONView):
    """One scorer that agents can use."""

    def get(self, request: Request, scorer_id: str) -> HttpResponse:
        entry = usable_scorers(request).get(scorer_id)
        if entry is None:
            raise NotFound(f"Scorer {scorer_id} not found.")
        return json_response(usable_scorer_body(entry, agents_by_scorer(request).get(scorer_id, [])))


class ScoresView(JSONView):
    """The creation of a score."""

    @idempotent
    def post(self, request: Request) -> HttpResponse:
        body = json_object_body(request)
        nested = body.get("score")
        given = nested if isinstance(nested, dict) else body
        inside = find_unknown_names(given, wire_names(ScoreBody), "score" if given is nested else "")
        with checking_names(request, {}, inside=inside) as names:
            validate_fields(ScoreBody, given)
        score = create_score(request, given)
        return json_response({"score": score_body(score)} | warning_payloads(names.unknown), 201)


def create_score(request: Request, given: JSONObject) -> Score:
    """Create a score of a run. Raise ConfigError, NotFound for a run of others, and RoleRequired."""
    fields = validate_fields(ScoreBody, given)
    run = get_readable_run(request, fields["run_id"])
    require_role(request.user, Role.EDITOR, run.owner_id)
    return Score.objects.create(
        run=run,
        scorer=fields["scorer_id"],
        score=fields.get("score"),
        reason=fields.get("reason") or "",
        label=fields.get("label") or "",
        details=fields.get("details") or {},
        source=Score.Source.PERSON,
        result=given,
        created_by_id=request.user.pk,
    )


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
    scores = page_of_scores(experiment, paging.start, paging.stop)
    bodies = [experiment_score_body(experiment, score) for score in scores]
    return json_response(paged("scores", bodies, count_scores(experiment), paging) | warning_payloads(unknown))


class ScorerScoresView(JSONView):
    """The scores by a scorer."""

    def get(self, request: Request, scorer_id: str) -> HttpResponse:
        if scorer_id not in usable_scorers(request):
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
