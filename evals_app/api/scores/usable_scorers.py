"""API views of the scorers that agents can use."""

from __future__ import annotations

import json

from django.db.models.fields.json import KeyTextTransform
from django.http import HttpResponse
from rest_framework.request import Request

from access_app.caller import Caller
from agentcms.api.responses import json_response
from agentcms.api.views import JSONView
from agentcms.errors import NotFound
from agents_app.models import Agent, AgentQuerySet
from evals_app.api.scorer_representation import usable_scorer_body
from evals_app.experiments.scoring import usable_scorers

LIVE_SCORERS = KeyTextTransform("scorers", "active_version__references")  # of an agent: a list of keys as JSON


def agents_with_scorers(user: Caller) -> AgentQuerySet:
    """Return the agents that the user may see and whose live version has scorers. Most have none, and are not read."""
    return Agent.objects.for_user(user).annotate(live_scorers=LIVE_SCORERS).filter(live_scorers__startswith='["')


def agents_by_scorer(agents: AgentQuerySet) -> dict[str, list[tuple[str, str]]]:
    """Return the IDs and names of the agents of each scorer."""
    result: dict[str, list[tuple[str, str]]] = {}
    for key, name, scorers in agents.values_list("pk", "name", LIVE_SCORERS):
        for scorer in json.loads(scorers):
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
        agents = agents_by_scorer(agents_with_scorers(request.user))
        return json_response(usable_scorer_body(entry, agents.get(scorer_id, [])))
