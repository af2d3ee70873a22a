"""Building agents from configurations."""

import logging

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from agents_app.configuration.references import MissingReference
from agents_app.registry import Entry, Kind, registry
from runs_app.building.agent import build_agent
from runs_app.exceptions import AgentBuildError
from runs_app.resolution import stored_agents
from tests.factories import AgentFactory

pytestmark = pytest.mark.django_db

DEMO = {"provider": "demo", "name": "echo", "delay": 0}


def test_a_stored_agent_answers(ask):
    AgentFactory(id="concierge")

    built = stored_agents.get("concierge").build()

    assert "Hello there" in ask(built, "Hello there")
    assert (built.model_name, built.is_demo, built.warnings) == ("demo/echo", True, ())


def test_instructions_model_and_options_come_from_the_configuration():
    built = build_agent(
        {
            "name": "Concierge",
            "instructions": "Greet guests.",
            "model": {**DEMO, "temperature": 0.3, "topP": 0.9},
            "defaultOptions": {"maxSteps": 3, "toolChoice": "auto"},
        }
    )

    assert built.options == {"maxSteps": 3, "toolChoice": "auto"}
    assert built.agent.model.model_name == "echo"
    assert built.agent.model_settings == {"temperature": 0.3, "top_p": 0.9}


MISSING = {
    "tools": (["word-count", "gone"], "No tool is registered as 'gone'."),
    "workflows": (["triage-ticket", "gone"], "No workflow is registered as 'gone'."),
    "agents": (["proofreader", "gone"], "No agent is registered as 'gone'."),
    "integrationTools": (["text_case_upper", "gone"], "No integration provider is registered as 'gone'."),
    "inputProcessors": ([{"key": "trim-whitespace"}, {"key": "gone"}], "No processor is registered as 'gone'."),
    "outputProcessors": ([{"key": "trim-whitespace"}, {"id": "gone"}], "No processor is registered as 'gone'."),
    "memory": ("gone", "No memory is registered as 'gone'."),
    "scorers": ({"answer-length": {}, "gone": {}}, "No scorer is registered as 'gone'."),
}


@pytest.mark.parametrize("field", MISSING)
def test_missing_entries_are_warnings_and_the_agent_answers(field, ask, caplog):
    named, sentence = MISSING[field]
    caplog.set_level(logging.WARNING, "runs_app")

    built = build_agent({"name": "Concierge", "instructions": "", "model": DEMO, field: named})

    assert built.warnings == (MissingReference(field, "gone", sentence),)
    assert [record.getMessage() for record in caplog.records] == [f"Agent 'Concierge': {sentence}"]
    assert "Good day" in ask(built, "Good day")


def test_an_unregistered_processor_is_a_warning():
    built = build_agent({"model": DEMO, "inputProcessors": [{"strength": 3}]})

    assert [warning.field for warning in built.warnings] == ["inputProcessors"]


def test_an_unregistered_memory_is_a_warning():
    registry.add(Entry(Kind.MEMORY, "elephant", "Elephant"))

    built = build_agent({"model": DEMO, "memory": "elephant"})

    assert [(warning.field, warning.key) for warning in built.warnings] == [("memory", "elephant")]


def test_an_unusable_option_is_omitted_with_a_warning():
    built = build_agent({"model": DEMO, "defaultOptions": {"temperature": "hot", "maxSteps": 2}})

    assert built.options == {"maxSteps": 2}
    assert built.warnings[0] == MissingReference(
        "defaultOptions",
        "temperature",
        "The option temperature is ignored: This must be a number.",
    )


@pytest.mark.parametrize(
    "setting",
    [
        {"warmth": 3},
        {"temperature": "hot"},
        {"thinking": "hard"},
        {"logitBias": {"a": "b"}},
        {"extra_headers": {"x": "y"}},
        {"openaiPreviousResponseId": "resp_1"},
        {"openaiReasoningEffort": "high"},
        {"extraBody": "previous_response_id"},
    ],
)
def test_an_unknown_model_setting_is_omitted_with_a_warning(setting):
    built = build_agent({"model": {**DEMO, **setting}})

    assert [(warning.field, warning.key) for warning in built.warnings] == [("model", *setting)]
    assert not built.agent.model_settings


@pytest.mark.parametrize(
    "model", [None, [], {}, {"provider": "demo"}, {"name": "echo"}, {"provider": "demo", "name": "opera"}]
)
def test_an_agent_needs_a_model(model):
    with pytest.raises(AgentBuildError):
        build_agent({"model": model})


def test_entries_with_one_name_are_one_tool():
    registry.add(Entry(Kind.TOOL, "workflow-triage-ticket", "Same", target=lambda: "tool", schema={}))

    built = build_agent({"model": DEMO, "tools": ["workflow-triage-ticket"], "workflows": ["triage-ticket"]})

    assert [(warning.field, warning.key) for warning in built.warnings] == [("workflows", "triage-ticket")]


def test_an_agent_without_sub_agents_is_built_without_queries():
    AgentFactory(id="concierge", tools=["word-count"])
    stored = stored_agents.get("concierge")
    stored.build()

    with CaptureQueriesContext(
        connection,
    ) as queries:
        stored.build()

    assert len(queries) == 0
