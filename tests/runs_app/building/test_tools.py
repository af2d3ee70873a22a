"""Tools, integration tools, workflows and sub-agents of agents."""

import asyncio
import json
import threading
from datetime import date
from decimal import Decimal
from typing import Any

import pytest
from django.core.exceptions import ValidationError
from django.db import DatabaseError, transaction
from pydantic_ai import ToolFailed, ToolReturnPart
from redis.exceptions import ConnectionError as RedisConnectionError

from agents_app.configuration.schema import to_wire_dict
from agents_app.editing.archiving import archive_locked
from agents_app.models import Agent
from agents_app.registry import Kind, registry, tool, workflow
from runs_app.building.agent import build_agent
from runs_app.building.tool_messages import UNKNOWN_ERROR_MESSAGE, UNREADABLE_RESULT_MESSAGE, UNREADABLE_VALUE
from runs_app.building.tool_names import tool_name
from runs_app.building.tools import to_tool_result
from runs_app.exceptions import RunError
from runs_app.resolution import stored_agents
from tests.factories import AgentFactory

pytestmark = pytest.mark.django_db

DEMO = {"provider": "demo", "name": "echo", "delay": 0}


@pytest.fixture
def call_tool(run):
    """Return a function that calls a tool of an agent and returns its result."""

    def call(text, **configuration):
        result = run(build_agent({"name": "Concierge", "model": DEMO, **configuration}), text)
        parts = [part for message in result.all_messages() for part in message.parts]
        (answer,) = [part for part in parts if isinstance(part, ToolReturnPart)]
        return answer.content, answer.outcome

    return call


def test_a_tool_is_called_with_its_arguments(call_tool):
    assert call_tool('Use calculator {"expression": "6 * 7"}', tools=["calculator"]) == (42.0, "success")


def test_an_integration_tool_is_called(call_tool):
    answer = call_tool('Use text_case_upper {"text": "quiet"}', integrationTools=["text_case_upper"])

    assert answer == ("QUIET", "success")


def test_a_workflow_is_called(call_tool):
    text = 'Use workflow-triage-ticket {"subject": "Urgent billing", "body": ""}'

    assert call_tool(text, workflows=["triage-ticket"]) == ({"queue": "billing", "priority": "high"}, "success")


def test_a_sub_agent_is_called(call_tool):
    answer = call_tool('Use agent-proofreader {"prompt": "Mend this"}', agents=["proofreader"])

    assert answer == ("proofreader was asked: Mend this", "success")


def test_a_stored_sub_agent_has_its_description():
    AgentFactory(id="clerk", description="Files letters.")
    AgentFactory(id="concierge", agents=["clerk"])

    built = stored_agents.get("concierge").build()

    (offered,) = built.agent.toolsets[-1].tools.values()
    assert (offered.name, built.warnings) == ("agent-clerk", ())
    assert "Files letters." in offered.description


def test_a_sub_agent_of_another_owner_is_not_found():
    AgentFactory(id="clerk", owner_id="press")
    AgentFactory(id="concierge", agents=["clerk"], owner_id="support")

    built = stored_agents.get("concierge").build()

    assert [warning.message for warning in built.warnings] == ["No agent is registered as 'clerk'."]


def test_an_archived_sub_agent_is_left_out_with_its_reason():
    clerk = AgentFactory(id="clerk")
    AgentFactory(id="concierge", agents=["clerk"])
    before = stored_agents.get("concierge").build()
    with transaction.atomic():
        archive_locked(Agent.objects.get_locked(clerk.pk))

    agent = stored_agents.get("concierge")

    assert before.warnings == ()
    assert [warning.message for warning in agent.build().warnings] == ["The agent 'clerk' is archived."]
    assert [warning.message for warning in agent.missing_references()] == ["The agent 'clerk' is archived."]


def test_a_tool_is_found_by_id_where_no_key_matches(call_tool):
    @tool("clock-tower", id="tower")
    def strike(times: int) -> str:
        return "dong " * times

    assert call_tool('Use tower {"times": 2}', tools=["tower"]) == ("dong dong ", "success")


def test_the_parameters_of_a_tool_may_have_any_name(call_tool):
    @tool("odd-names")
    def join(context: str, function: str, context_: str = "") -> str:
        return f"{context} {function}{context_}"

    @workflow("odd-flow")
    def repeat(function: str) -> str:
        return function

    called = call_tool('Use odd-names {"context": "In", "function": "use"}', tools=["odd-names"])
    flowed = call_tool('Use workflow-odd-flow {"function": "on"}', workflows=["odd-flow"])

    assert (called, flowed) == (("In use", "success"), ("on", "success"))


def test_a_tool_with_a_parameter_without_a_name_is_left_out():
    @tool("listed")
    def listed(*words: str) -> str:
        return " ".join(words)

    @tool("placed")
    def placed(word: str, /) -> str:
        return word

    built = build_agent({"name": "Concierge", "model": DEMO, "tools": ["listed", "placed"]})

    assert [warning.key for warning in built.warnings] == ["listed", "placed"]
    assert not built.tools


def test_a_tool_can_be_asynchronous(call_tool):
    @tool("dove")
    async def dove() -> str:
        return "coo"

    assert call_tool("Use dove", tools=["dove"]) == ("coo", "success")


def test_the_model_gets_the_error_of_a_tool(call_tool):
    content, outcome = call_tool('Use calculator {"expression": "2 ** 9"}', tools=["calculator"])

    assert outcome == "failed"
    assert content == "Use only numbers, + - * / % and parentheses."


@pytest.mark.parametrize("error", [SystemExit, KeyboardInterrupt, StopIteration, BaseException])
def test_a_tool_cannot_stop_the_event_loop(call_tool, error):
    @tool("saboteur")
    def saboteur() -> str:
        raise error("now")

    content, outcome = call_tool("Use saboteur", tools=["saboteur"])

    assert (content, outcome) == ("The function tried to end its process or its caller.", "failed")


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (SystemExit, "The function tried to end its process or its caller."),
        (KeyboardInterrupt, "The function tried to end its process or its caller."),
        (BaseException, "The function tried to end its process or its caller."),
        (asyncio.CancelledError, "The function broke off its work, although nobody has cancelled it."),
    ],
)
def test_an_asynchronous_tool_cannot_stop_the_event_loop(call_tool, error, message):
    @tool("saboteur")
    async def saboteur() -> str:
        raise error("now")

    content, outcome = call_tool("Use saboteur", tools=["saboteur"])

    assert (content, outcome) == (message, "failed")


def test_the_model_gets_the_error_of_a_sub_agent(run):
    async def failing(key, prompt, call_id):
        raise RuntimeError("It fell over.")

    result = run(
        build_agent({"model": DEMO, "agents": ["proofreader"]}),
        "Use agent-proofreader",
        call_sub_agent=failing,
    )

    assert "It fell over." in result.output
    assert "RuntimeError" not in result.output


def test_a_tool_that_exceeds_its_timeout_fails(run, settings):
    settings.RUN_TOOL_TIMEOUT = 0.05
    timeout_reported = threading.Event()

    @tool("sloth")
    def sloth() -> str:
        timeout_reported.wait(30)
        return "done"

    result = run(build_agent({"model": DEMO, "tools": ["sloth"]}), "Use sloth")
    timeout_reported.set()

    assert "Timed out after 0.05 seconds" in str(result.all_messages())


def test_a_tool_that_needs_approval_is_not_called(run):
    configuration = {"name": "Concierge", "model": DEMO, "tools": ["send-notice"]}

    result = run(build_agent(configuration), 'Use send-notice {"recipient": "Ada", "message": "Hi"}')

    (call,) = result.output.approvals
    assert (call.tool_name, call.args_as_dict()) == ("send-notice", {"recipient": "Ada", "message": "Hi"})


@pytest.mark.parametrize(
    ("returned", "expected"),
    [(float("inf"), "Infinity"), (b"\xff", "_w=="), ({1: {2}}, {"1": [2]}), ("a\ud800", "a?")],
    ids=["infinity", "bytes", "set", "half a pair"],
)
def test_a_tool_result_is_converted_to_json(call_tool, returned, expected):
    @tool("oddity")
    def oddity() -> Any:
        return returned

    assert call_tool("Use oddity", tools=["oddity"]) == (expected, "success")


class Ticket:
    """An object without a text."""


class Order:
    """An object with a text."""

    def __str__(self):
        return "Order 7"


class Broken:
    """An object whose text cannot be made."""

    def __str__(self):
        raise AttributeError("'Broken' object has no attribute 'name'")


CIRCLE: list = []
CIRCLE.append(CIRCLE)


@pytest.mark.parametrize(
    ("returned", "expected"),
    [
        (Order(), "Order 7"),
        ({"order": Order(), "ticket": Ticket()}, {"order": "Order 7", "ticket": UNREADABLE_VALUE}),
        ([Ticket, len], [UNREADABLE_VALUE, UNREADABLE_VALUE]),
        ({"open": Decimal("1.50"), "on": date(2026, 1, 31)}, {"open": "1.50", "on": "2026-01-31"}),
    ],
)
def test_values_that_json_does_not_have_become_words(call_tool, returned, expected):
    @tool("counter-clerk")
    def counter_clerk() -> Any:
        return returned

    assert call_tool("Use counter-clerk", tools=["counter-clerk"]) == (expected, "success")


@pytest.mark.parametrize("returned", [object(), Ticket(), Broken(), CIRCLE, {"a": Broken()}, lambda: None])
def test_a_result_without_words_is_a_failure(call_tool, returned):
    @tool("counter-clerk")
    def counter_clerk() -> Any:
        return returned

    assert call_tool("Use counter-clerk", tools=["counter-clerk"]) == (UNREADABLE_RESULT_MESSAGE, "failed")


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (ValueError("There is no order 7."), "There is no order 7."),
        (LookupError("There is no order 7."), "There is no order 7."),
        (ValidationError("There is no order 7."), "There is no order 7."),
        (RuntimeError("The till is closed."), "The till is closed."),
        (KeyError("order"), UNKNOWN_ERROR_MESSAGE),
        (AttributeError("'NoneType' object has no attribute 'total'"), UNKNOWN_ERROR_MESSAGE),
        (RuntimeError("<Ticket object at 0x7f2a4c1b8e50> is closed"), UNKNOWN_ERROR_MESSAGE),
        (Agent.DoesNotExist("Agent matching query does not exist."), "The tool did not find what it looked for."),
        (
            ConnectionRefusedError(111, "Connection refused"),
            "The tool could not reach a file or a service that it needs.",
        ),
        (
            RedisConnectionError("Error 111 connecting to cache.internal:6379. Connection refused."),
            "The tool could not reach a file or a service that it needs.",
        ),
        (TimeoutError(), "The tool did not get an answer in time."),
        (ValueError(), UNKNOWN_ERROR_MESSAGE),
        (DatabaseError("column x of relation runs_app_agentrun does not exist"), UNKNOWN_ERROR_MESSAGE),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else "",
)
def test_the_model_gets_errors_in_words(call_tool, error, expected):
    @tool("cashier")
    def cashier() -> str:
        raise error

    content, outcome = call_tool("Use cashier", tools=["cashier"])

    assert (content, outcome) == (expected, "failed")


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("1 / 0", "The tool cannot divide by zero."),
        ("two times three", "This is not an arithmetic expression. Write one such as 2 * (3 + 4)."),
        ("9" * 199 + "*" + "9" * 199, "An expression has at most 200 characters."),
        ("", "This is not an arithmetic expression. Write one such as 2 * (3 + 4)."),
    ],
)
def test_the_calculator_explains_its_errors(call_tool, expression, expected):
    text = f"Use calculator {json.dumps({'expression': expression})}"

    assert call_tool(text, tools=["calculator"]) == (expected, "failed")


def test_an_unknown_time_zone_is_named(call_tool):
    text = 'Use current-time {"time_zone": "Mars/North"}'

    assert call_tool(text, tools=["current-time"]) == (
        "Unknown time zone 'Mars/North'. Use a name such as Europe/Berlin.",
        "failed",
    )


def test_a_tool_with_a_too_large_result_fails(call_tool):
    @tool("library")
    def library() -> str:
        return "book " * 100_000

    assert call_tool("Use library", tools=["library"]) == (
        "The result is larger than 256 kB. Ask for less data.",
        "failed",
    )


@pytest.mark.parametrize("result", ["д" * 2**17, "\n" * 2**18, ["д" * (2**17 - 2)]], ids=["text", "lines", "list"])
def test_a_result_is_as_large_as_the_text_that_the_model_gets(result):
    assert to_tool_result(result) == result

    with pytest.raises(ToolFailed, match="larger than 256 kB"):
        to_tool_result([result, ""])


@pytest.mark.parametrize("key", ["word-count", "a" * 64, "_private"])
def test_a_key_valid_for_providers_is_the_tool_name(key):
    assert tool_name(key) == key


@pytest.mark.parametrize("key", ["Wörter zählen", "a" * 65, "7up", "a.b", "日本"])
def test_any_other_key_gets_a_unique_valid_name(key):
    name = tool_name(key)

    assert name.isascii()
    assert len(name) <= 64
    assert name[0].isalpha() or name[0] == "_"
    assert name == tool_name(name) != tool_name(f"{key}!")


def test_the_toolset_of_an_agent_has_a_stable_id():
    built = build_agent({"model": DEMO, "tools": ["word-count"]})

    assert "agent-tools" in [toolset.id for toolset in built.agent.toolsets]


@pytest.mark.parametrize(
    ("options", "called"),
    [
        ({"toolChoice": "none"}, 0),
        ({"toolChoice": "auto"}, 1),
        ({"activeTools": ["calculator"]}, 0),
        ({"activeTools": ["word-count"]}, 1),
    ],
)
def test_options_limit_the_callable_tools(run, options, called):
    built = build_agent({"model": DEMO, "tools": ["word-count", "calculator"]})

    result = run(built, "Use word-count", options=options)

    assert result.usage.tool_calls == called


def test_a_required_tool_applies_to_the_first_step(run):
    built = build_agent({"model": DEMO, "tools": ["word-count", "current-time"]})

    result = run(built, "Hello", options={"toolChoice": {"type": "tool", "toolName": "current-time"}})

    assert result.usage.tool_calls == 1
    assert "current-time" in result.output


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"toolChoice": {"type": "tool", "toolName": "gone"}}, "the tool gone, which this run does not have"),
        ({"toolChoice": {"type": "tool", "toolName": "calculator"}, "activeTools": ["word-count"]}, "calculator"),
        ({"toolChoice": "required", "activeTools": []}, "this run has no tools"),
    ],
)
def test_a_required_tool_that_is_missing_ends_the_run_with_a_reason(run, options, reason):
    built = build_agent({"model": DEMO, "tools": ["word-count", "calculator"]})

    with pytest.raises(RunError, match=reason):
        run(built, "Hello", options=options)


def test_an_agent_in_code_is_built_like_a_stored_one(ask):
    entry = registry.get(Kind.AGENT, "proofreader")

    assert "teh cat" in ask(build_agent(to_wire_dict(entry.target)), "teh cat")
