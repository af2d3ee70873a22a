"""The examples of docs/running.md."""

import itertools
import re

import pytest

from agentcms.server.processes import PROJECT
from runs_app import stop_conditions
from runs_app.building.agent import build_agent
from runs_app.resolution import stored_agents
from tests.factories import AgentFactory
from tests.runs import chunks, wait_for_end
from tests.settings_file import settings_source

pytestmark = pytest.mark.django_db

DOCS = (PROJECT / "docs" / "running.md").read_text()
TIMES = itertools.count()
DEMO = {"provider": "demo", "name": "echo", "delay": 0}


@pytest.fixture
def examples(monkeypatch):
    """Return the names that all examples define."""
    monkeypatch.setattr(stop_conditions, "_conditions", {})
    AgentFactory(id="concierge")
    defined = {"__name__": f"docs{next(TIMES)}"}  # a Celery task can be registered only once
    for block in re.findall(r"```python\n(.*?)```", DOCS, re.DOTALL):
        exec(block, defined)
    return defined


def test_the_examples_register_entries_for_agents(examples, ask):
    agent = {
        "name": "Clerk",
        "model": DEMO,
        "tools": ["orders.status", "refund"],
        "workflows": ["monthly-report"],
        "integrationTools": ["post_parcels_track"],
        "inputProcessors": [{"key": "no-numbers", "sign": "*"}],
        "scorers": {"is-short": {}},
    }

    built = build_agent(agent)

    assert built.warnings == ()
    assert "You said: Born in ****" in ask(built, "Born in 1999")
    assert "Parcel of Ada is in Hamburg." in ask(built, 'Use post_parcels_track {"number": "of Ada"}')
    assert "Order A is on its way." in ask(built, 'Use orders.status {"order": "A"}')


def test_arguments_are_described_by_the_docstring(examples):
    built = build_agent({"model": DEMO, "tools": ["order-status"]})

    (tool,) = built.agent.toolsets[-1].tools.values()
    properties = tool.function_schema.json_schema["properties"]
    assert properties["order"]["description"] == "The order number, as printed on the invoice."


def test_a_provider_in_code_answers(examples, ask):
    assert ask(build_agent({"model": {"provider": "attic", "name": "small"}}), "Hi") == "success (no tool calls)"


def test_code_can_run_stored_agents(examples):
    assert examples["built"].warnings == ()
    assert examples["configuration"]["name"] == "Concierge"


def test_a_stop_condition_is_registered_and_named_by_a_run(examples, idle_engine):
    agent = AgentFactory(model=DEMO, tools=["word-count"])

    run = examples["count_words"](stored_agents.get(agent.pk), None, 'Use word-count {"text": "one two"}')

    done = wait_for_end(run)
    assert (done.status, len(chunks(done, "tool-result")), len(chunks(done, "step-start"))) == ("succeeded", 1, 1)


def test_every_named_setting_exists():
    settings = settings_source()
    named = {name for name in re.findall(r"`([A-Z]+_[A-Z_]+)(?:=[^`]*)?`", DOCS) if name != "HTTPS_PROXY"}

    assert {name for name in named if f'"{name}"' not in settings} == set()
