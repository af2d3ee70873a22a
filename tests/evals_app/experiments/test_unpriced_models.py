"""Limits of the cost of an experiment over models without a known price."""

from unittest.mock import Mock

import pytest
from django.core.management import call_command
from pydantic_ai.models.fallback import FallbackModel
from pydantic_ai.models.test import TestModel

from agents_app.registry import Entry, Kind, registry
from evals_app.management.commands import run_experiment
from evals_app.models import Dataset, ItemVersion
from evals_app.scorers.changes import change_scorer, create_scorer
from evals_app.scorers.kinds.pipelines import pipeline_steps
from runs_app.providers import cached_providers
from tests.api_client import Caller
from tests.evals_app.experiment_runs import make_dataset
from tests.factories import AgentFactory, api_key, member
from tests.page_client import browser
from tests.runs import DEMO

pytestmark = pytest.mark.django_db
MESSAGE = "The price of {} is not known, so maxCost does not limit what it costs. Set maxTokens as well."
KNOWN, UNKNOWN = {"provider": "openai", "name": "gpt-4o"}, {"provider": "openai", "name": "own-model"}


@pytest.fixture
def editor(settings):
    make_dataset("One", owner_id="support")
    return member("editor", "support")


def create(editor, budget=None, more=None, **fields):
    AgentFactory(id="concierge", owner_id="support", **fields)
    body = {"targetId": "concierge", "budget": budget or {"maxCost": 1}, **(more or {})}
    answer = Caller(api_key(editor)).post("/api/datasets/support/experiments", body)
    assert answer.status_code == 201, answer.body
    return answer.body


def test_a_limit_of_the_cost_without_a_price_is_a_warning_and_on_the_page(editor):
    body = create(editor, model=UNKNOWN)

    warning = {"field": "budget.maxCost", "key": "maxCost", "message": MESSAGE.format("openai/own-model")}
    page = browser(editor).get(f"/experiments/{body['id']}").content.decode()
    assert body["warnings"] == [warning]
    assert warning["message"] in page


def test_a_sub_agent_without_a_price_is_named(editor):
    AgentFactory(id="helper", owner_id="support", model=UNKNOWN)

    body = create(editor, model=KNOWN, agents=["helper"])

    assert [warning["message"] for warning in body["warnings"]] == [MESSAGE.format("openai/own-model")]


PROMPT, FUNCTION = {"prompt": "Rate it."}, {"function": "rate"}


def judge(kind, model=UNKNOWN, owner_id="support", **settings):
    """Create a scorer that asks a model."""
    snapshot = {"name": "Judge", "type": kind, "model": model, "instructions": "Be strict.", "presetConfig": settings}
    return create_scorer(snapshot, owner_id=owner_id, author="ann", id="judge")


@pytest.mark.parametrize(
    ("kind", "settings"), [("llm-judge", {}), ("tone", {}), ("pipeline", {"generateScore": PROMPT})]
)
@pytest.mark.parametrize("place", ["experiment", "dataset", "item"])
def test_a_scorer_that_asks_a_model_without_a_price_is_named(editor, kind, settings, place):
    judge(kind, **settings)
    if place == "dataset":
        Dataset.objects.update(scorer_keys=["judge"])
    if place == "item":
        ItemVersion.objects.update(scorer_keys=["judge"])

    body = create(editor, model=KNOWN, more={"scorerIds": ["judge"]} if place == "experiment" else {})

    assert [warning["message"] for warning in body["warnings"]] == [MESSAGE.format("openai/own-model")]


def test_scorers_that_ask_no_such_model_have_no_warning(editor, monkeypatch):
    monkeypatch.setitem(pipeline_steps, "rate", len)
    judge("pipeline", generateScore=FUNCTION)

    assert "warnings" not in create(editor, model=KNOWN, more={"scorerIds": ["judge"]})


def test_the_version_that_scores_is_the_one_that_counts(editor):
    judge("llm-judge")
    change_scorer("judge", {"model": KNOWN}, author="ann")

    body = create(editor, model=KNOWN, more={"scorerIds": ["judge"]})
    change_scorer("judge", {"model": UNKNOWN}, author="ann")

    assert "warnings" not in body
    assert "is not known" not in browser(editor).get(f"/experiments/{body['id']}").content.decode()


def test_nothing_is_told_of_a_scorer_of_another_team(editor):
    judge("llm-judge", owner_id="legal")
    ItemVersion.objects.update(scorer_keys=["judge"])

    assert "warnings" not in create(editor, model=KNOWN)


def test_a_judge_that_is_tested_is_named(editor):
    judge("llm-judge")

    body = create(editor, more={"targetType": "scorer", "targetId": "judge", "scorerIds": []})

    assert [warning["message"] for warning in body["warnings"]] == [MESSAGE.format("openai/own-model")]


@pytest.fixture
def attic():
    """Register a provider in code, whose models are those that the returned dict has by name."""
    models = {}
    registry.add(Entry(Kind.MODEL_PROVIDER, "attic", "Attic", target=lambda name, choice: models[name]))
    cached_providers.invalidate()
    return models


@pytest.mark.parametrize(
    ("model", "is_known"),
    [
        (TestModel(), False),
        (TestModel(model_name="gpt-4o"), True),
        (FallbackModel(TestModel(model_name="gpt-4o"), TestModel(model_name="gpt-4o-mini")), True),
        (FallbackModel(TestModel(model_name="gpt-4o"), TestModel(model_name="own-model")), False),
        (None, True),
    ],
)
def test_a_model_in_code_without_a_price_is_named(editor, attic, model, is_known):
    if model is not None:  # otherwise the provider cannot build it, so that no run can use it
        attic["small"] = model

    body = create(editor, model={"provider": "attic", "name": "small"})

    messages = [warning["message"] for warning in body.get("warnings", [])]
    assert messages == ([] if is_known else [MESSAGE.format("attic/small")])


@pytest.mark.parametrize(
    ("model", "budget"), [(KNOWN, {"maxCost": 1}), (UNKNOWN, {"maxTokens": 100}), (DEMO, {"maxCost": 1})]
)
def test_other_limits_and_known_prices_have_no_warning(editor, model, budget):
    assert "warnings" not in create(editor, budget, model=model)


def test_the_command_says_so(editor, capsys, monkeypatch):
    AgentFactory(id="concierge", owner_id="support", model=UNKNOWN)
    monkeypatch.setattr(run_experiment, "run_to_end", Mock(side_effect=KeyboardInterrupt))  # as if interrupted at once

    with pytest.raises(SystemExit):
        call_command("run_experiment", "support", agent="concierge", user=editor.username, max_cost=1.0)

    assert MESSAGE.format("openai/own-model") in capsys.readouterr().err
