"""Agents that name stored scorers, over the API and on their page."""

import pytest

from agents_app.models import Agent
from agents_app.views.status import find_warnings
from evals_app.scorers import changes
from evals_app.scorers.cached_scorers import scorer_table
from tests.api_client import AGENTS, MODEL, Caller
from tests.evals_app.api.test_scorers import POLITE
from tests.factories import api_key, member

pytestmark = pytest.mark.django_db

NAMES = ["shared", "own", "foreign", "unknown"]


@pytest.fixture
def caller():
    """The author of an agent that names a scorer of each kind."""
    for key, owner in (("shared", ""), ("own", "support"), ("foreign", "rival")):
        changes.create_scorer(POLITE, owner_id=owner, author="ann", id=key)
    scorer_table.invalidate()
    caller = Caller(api_key(member("publisher", "support")))
    body = {"id": "desk", "name": "Desk", "ownerId": "support", "model": MODEL, "instructions": "Help."}
    created = caller.post(AGENTS, body | {"scorers": {name: {} for name in NAMES}})
    assert created.status_code == 201
    return caller


def test_a_scorer_of_another_team_is_reported_like_an_unknown_one(caller):
    expected = [f"No scorer is registered as '{key}'." for key in ("foreign", "unknown")]

    assert [warning["message"] for warning in caller.get(f"{AGENTS}/desk").body["warnings"]] == expected
    assert [warning["message"] for warning in caller.get(AGENTS).body["agents"][0]["warnings"]] == expected
    warnings = find_warnings([Agent.objects.with_versions().get(pk="desk")])["desk"]
    assert [warning.message for warning in warnings] == expected


def test_strict_refuses_a_scorer_of_another_team(caller):
    refused = caller.patch(f"{AGENTS}/desk?strict=true", {"scorers": {"own": {}, "foreign": {}}})

    assert refused.status_code == 400
    assert refused.body["issues"][0]["field"] == "scorers.foreign"
