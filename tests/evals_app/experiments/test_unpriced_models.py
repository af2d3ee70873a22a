"""Limits of the cost of an experiment over models without a known price."""

from unittest.mock import Mock

import pytest
from django.core.management import call_command

from evals_app.management.commands import run_experiment
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


def create(editor, budget=None, **fields):
    AgentFactory(id="concierge", owner_id="support", **fields)
    body = {"targetId": "concierge", "budget": budget or {"maxCost": 1}}
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
