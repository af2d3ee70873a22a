"""Scorers that are functions in code: in experiments and of answers in use."""

import asyncio

import pytest

from agents_app.registry import Kind, registry, scorer
from evals_app.scorers.results import Answer
from evals_app.scorers.scoring import score_answer
from runs_app.scoring import compute_score
from tests.runs_app.factories import RunFactory

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def slow_scorer():
    @scorer("is-polite")
    async def is_polite(answer: str) -> float:
        await asyncio.sleep(0)
        return float("please" in answer)

    yield
    registry.remove(Kind.SCORER, "is-polite")


def test_a_scorer_may_be_asynchronous(slow_scorer):
    in_experiment = asyncio.run(score_answer("is-polite", None, Answer(input="Hello", output="Wait, please.")))
    in_use = compute_score(RunFactory(output="Wait, please."), "is-polite")

    assert (in_experiment.score, in_experiment.error) == (1, "")
    assert in_use["score"] == 1
