"""A stored scorer whose ID code registers later: the same one scores runs and experiments."""

import asyncio

import pytest

from agents_app.registry import Entry, Kind, registry
from evals_app.experiments.scoring import find_scorer
from evals_app.forms.experiments import scorer_choices
from evals_app.scorers.cached_scorers import scorer_table
from evals_app.scorers.changes import create_scorer
from evals_app.scorers.results import Answer
from evals_app.scorers.scoring import score_answer
from runs_app.scoring import compute_score
from tests.api_client import Caller
from tests.factories import AgentFactory, api_key, member
from tests.runs_app.factories import RunFactory

pytestmark = pytest.mark.django_db(transaction=True)

GREETS = {"name": "Greets", "type": "check", "presetConfig": {"check": "includes", "value": "Good day"}}


@pytest.fixture
def greets():
    """Store a scorer of the team support, which gives 1, and register a function that gives 0.25."""
    create_scorer(GREETS, owner_id="support", author="ann", id="greets")
    scorer_table.invalidate()
    registry.add(Entry(Kind.SCORER, "greets", "In code", target=lambda answer: 0.25))
    yield
    registry.remove(Kind.SCORER, "greets")


@pytest.mark.parametrize(("owner_id", "score", "title"), [("support", 1, "Greets"), ("legal", 0.25, "In code")])
def test_the_stored_scorer_scores_for_its_team_and_the_function_for_others(greets, owner_id, score, title):
    run = RunFactory(agent=AgentFactory(owner_id=owner_id))
    answer = Answer(input="Hello", output="Good day.")

    assert compute_score(run, "greets")["score"] == score
    assert asyncio.run(score_answer("greets", None, answer, owner_id)).score == score
    assert find_scorer("greets", owner_id).title == title


@pytest.mark.parametrize(
    ("owner_id", "title", "is_in_code"), [("support", "Greets", False), ("legal", "In code", True)]
)
def test_lists_have_the_scorer_that_scores_for_the_team(client, greets, owner_id, title, is_in_code):
    user = member("editor", owner_id)
    AgentFactory(id="clerk", owner_id=owner_id, scorers={"greets": {}})
    client.force_login(user)

    listed = Caller(api_key(user)).get("/api/scores/scorers").body["greets"]
    editor = client.get("/agents/clerk").content.decode()

    assert (listed["scorer"]["config"]["name"], dict(scorer_choices(owner_id))["greets"]) == (title, title)
    assert title in editor
    assert ("In code" in client.get("/scorers").content.decode()) == is_in_code
