"""The examples of docs/scorers.md."""

import json
import re

import pytest

from agentcms.server.processes import PROJECT
from agents_app.registry import Kind, registry
from evals_app.scorers.kinds.pipelines import pipeline_steps
from evals_app.scorers.results import Answer
from tests.api_client import Caller
from tests.evals_app.scorers.judge_model import score

DOCS = (PROJECT / "docs" / "scorers.md").read_text()
BODIES = [json.loads(block) for block in re.findall(r"```json\n(.*?)```", DOCS, re.DOTALL)]


@pytest.fixture
def examples():
    """Register what the examples in Python define."""
    for block in re.findall(r"```python\n(.*?)```", DOCS, re.DOTALL):
        exec(block, {"__name__": "shop.agent_tools"})
    yield
    pipeline_steps.pop("share-of-100-words")


def test_the_bodies_create_scorers(examples, admin_caller: Caller):
    responses = [admin_caller.post("/api/stored/scorers", body) for body in BODIES]

    assert [response.status_code for response in responses] == [201] * 4
    assert {body["type"] for body in BODIES} == {"llm-judge", "check", "trajectory", "pipeline"}
    assert [response.body.get("warnings") for response in responses] == [None] * 4


@pytest.mark.django_db
def test_the_code_scores_answers(examples):
    (pipeline,) = [body for body in BODIES if body["type"] == "pipeline"]

    result = score(
        {"type": "pipeline", "presetConfig": pipeline["presetConfig"]}, Answer("When?", "On that day, please.")
    )

    assert result.score == 0.04
    assert registry.get(Kind.SCORER, "is-polite").target("Wait, please.") == 1.0
    assert registry.get(Kind.SCORER, "names-a-day").title == "Names a day"
