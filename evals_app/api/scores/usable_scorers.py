"""API views of the scorers that agents can use."""

from __future__ import annotations

from django.http import HttpResponse
from rest_framework.request import Request

from access_app.caller import Caller
from agentcms.api.responses import json_response
from agentcms.api.views import JSONView
from agentcms.errors import NotFound
from agents_app.models import Agent, AgentQuerySet
from evals_app.api.scorer_representation import usable_scorer_body
from evals_app.experiments.scoring import usable_scorers


def agents_with_scorers(user: Caller) -> AgentQuerySet:
    """Return the agents with scorers that the user may see. Most agents have none, and are not read."""
    return Agent.objects.for_user(user).exclude(scorers=None).exclude(scorers={})


def agents_by_scorer(agents: AgentQuerySet) -> dict[str, list[tuple[str, str]]]:
    """Return the IDs and names of the agents of each scorer."""
    result: dict[str, list[tuple[str, str]]] = {}
    for key, name, scorers in agents.values_list("pk", "name", "scorers"):
        for scorer in scorers or {}:
            result.setdefault(scorer, []).append((key, name))
    return result


class UsableScorersView(JSONView):
    """The scorers that agents can use, by key."""

    def get(self, request: Request) -> HttpResponse:
        agents = agents_by_scorer(agents_with_scorers(request.user))
        entries = usable_scorers(request.user)
        return json_response({key: usable_scorer_body(entry, agents.get(key, [])) for key, entry in entries.items()})


class UsableScorerView(JSONView):
    """One scorer that agents can use."""

    def get(self, request: Request, scorer_id: str) -> HttpResponse:
        entry = usable_scorers(request.user).get(scorer_id)
        if entry is None:
            raise NotFound(f"Scorer {scorer_id} not found.")
        agents = agents_with_scorers(request.user).filter(scorers__has_key=scorer_id)
        return json_response(usable_scorer_body(entry, [*agents.values_list("pk", "name")]))
