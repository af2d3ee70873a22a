"""The demo model."""

import asyncio
import time

import pytest
from pydantic_ai import (
    ModelRequest,
    ModelResponse,
    TextPart,
    ToolCallPart,
    ToolDefinition,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.models.function import AgentInfo

from runs_app.building.agent import build_agent
from runs_app.providers.demo_calls import (
    example_arguments,
    guess_arguments,
    parse_arguments,
    requested_calls,
)
from runs_app.providers.demo_model import remembered_line, result_text
from tests.runs_app.conftest import running

pytestmark = pytest.mark.django_db

DEMO = {"provider": "demo", "name": "echo", "delay": 0}


def built(**configuration):
    return build_agent({"name": "Concierge", "model": DEMO, **configuration})


def called(result):
    parts = [part for message in result.all_messages() for part in message.parts]
    return [(part.tool_name, part.args_as_dict()) for part in parts if isinstance(part, ToolCallPart)]


def test_repeated_names_of_required_arguments_count_once():
    schema = {"type": "string"}
    for _ in range(20):
        schema = {"type": "object", "properties": {"a": schema}, "required": ["a"] * 50}

    assert "a" in guess_arguments(schema, "text")


def test_many_tools_are_found_in_a_long_message_at_once():
    tools = [ToolDefinition(name=f"tool-{number}") for number in range(500)]
    info = AgentInfo(
        function_tools=tools,
        allow_text_output=True,
        output_tools=[],
        model_settings=None,
        model_request_parameters=ModelRequestParameters(),
        instructions=None,
    )
    started = time.process_time()

    calls = requested_calls("tool " * 100_000, info)

    assert calls == {}
    assert time.process_time() - started < 2


def test_the_answer_to_a_repeated_question_is_remembered_and_not_the_question():
    question = "Which colour do I like best?"
    block = (
        "<remembered_from_other_conversation>",
        "user: My favourite colour is teal.",
        f"user: {question}",
        f"assistant: I am the demo model 'echo'. You said: {question}",
        "My instructions begin: Say which colour it is.",
        "</remembered_from_other_conversation>",
    )

    assert remembered_line("\n".join(block), question) == "user: My favourite colour is teal."
    assert remembered_line("\n".join([*block[:1], *block[2:]]), question) == f"user: {question}"
    assert remembered_line("", question) == ""


@pytest.mark.parametrize("name", ["echo", "storyteller"])
def test_it_names_itself_and_answers_identical_messages_identically(name, ask):
    agent = built(model={**DEMO, "name": name})

    answers = {ask(agent, "Lighthouses") for _ in range(2)}

    assert len(answers) == 1
    (answer,) = answers
    assert answer.startswith(f"I am the demo model '{name}'.")
    assert "Lighthouses" in answer


def test_other_instructions_give_other_answers(ask):
    answers = [
        ask(built(instructions=text), "Hello") for text in ("Greet guests.", "Greet guests by name.\nBe brief.")
    ]

    assert answers[0].endswith("My instructions begin: Greet guests.")
    assert answers[1].endswith("My instructions begin: Greet guests by name.")


def test_it_uses_the_message_history(ask):
    history = [ModelRequest([UserPromptPart("My name is Ada.")]), ModelResponse([TextPart("Hello Ada.")])]

    assert "Before that: My name is Ada." in ask(built(), "And yours?", history=history)


@pytest.mark.parametrize(
    ("message", "calls"),
    [
        ('Use word-count {"text": "one two"}', [("word-count", {"text": "one two"})]),
        ("Call word-count with {\"text\": \"one\"} please", [("word-count", {"text": "one"})]),
        ("Use word-count: one two three", [("word-count", {"text": "one two three"})]),
        ("WORD-COUNT", [("word-count", {"text": "WORD-COUNT"})]),
        ("calculator 6*7, current-time", [("calculator", {"expression": "6*7, current-time"}), ("current-time", {})]),
        ("Ask proofreader to mend this", [("agent-proofreader", {"prompt": "to mend this"})]),
        ("No word-counting here", []),
        ("Hello", []),
    ],
)  # fmt: skip
def test_it_calls_a_tool_named_in_the_message(message, calls, run):
    agent = built(tools=["word-count", "calculator", "current-time"], agents=["proofreader"])

    assert called(run(agent, message)) == calls


def test_it_calls_a_workflow_by_its_key(run):
    agent = built(workflows=["summarise-thread"])

    assert called(run(agent, "Run summarise-thread on this")) == [
        ("workflow-summarise-thread", {"messages": ["on this"]})
    ]


def test_it_answers_with_tool_results(ask):
    answer = ask(
        built(tools=["word-count", "calculator"]), 'word-count {"text": "a b"} calculator {"expression": "1+1"}'
    )

    assert answer == "I am the demo model 'echo'. word-count says 2; calculator says 2.0."


def test_a_result_that_is_a_sentence_gets_no_second_full_stop():
    part = ToolReturnPart("issue-refund", "Tool call was not approved by the user.")

    assert result_text(part) == "issue-refund says Tool call was not approved by the user"


def test_it_does_not_retry_refused_arguments(run):
    result = run(built(tools=["word-count"]), 'Use word-count {"words": 3}')

    assert "Field required" in result.output
    assert result.usage.requests == 2


@pytest.mark.parametrize(
    ("schema", "made"),
    [
        ({"type": "integer"}, 12),
        ({"type": "number"}, 12.5),
        ({"type": "boolean"}, True),
        ({"type": "array", "items": {"type": "string"}}, ["about 12.5 of them"]),
        ({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}, {"n": 12}),
        ({"type": "null"}, None),
        ({"enum": ["low", "high"]}, "low"),
        ({}, "about 12.5 of them"),
    ],
)
def test_generated_arguments_match_the_schema(schema, made):
    parameters = {"type": "object", "properties": {"it": schema, "more": {}}, "required": ["it"]}

    assert example_arguments(parameters, "about 12.5 of them") == {"it": made}


@pytest.mark.parametrize(
    "schema",
    [
        {"properties": []},
        {"properties": {"it": 5}, "required": ["it"]},
        {"required": 5},
        {"properties": {"it": {"enum": []}}, "required": ["it"]},
    ],
    ids=["a list", "a number", "nothing to go through", "nothing to choose"],
)
def test_an_invalid_schema_gets_arguments(schema):
    assert guess_arguments(schema, "about 12.5 of them") == {}


def test_a_very_long_number_is_no_error():
    parameters = {"properties": {"it": {"type": "integer"}}, "required": ["it"]}

    assert guess_arguments(parameters, "9" * 400) == {"it": 10**15 - 1}


@pytest.mark.parametrize("text", ['{"a": ', "[1]", 'then {"a": 1}', "nothing"])
def test_only_a_following_object_is_used_as_arguments(text):
    assert parse_arguments(text) is None


def test_too_deep_json_is_not_used_as_arguments():
    assert parse_arguments('{"a":' * 100_000) is None


def test_it_streams_word_by_word():
    agent = built().agent

    async def chunks():
        async with agent.run_stream("one two three", deps=running()) as stream:
            return [chunk async for chunk in stream.stream_text(delta=True, debounce_by=None)]

    assert asyncio.run(chunks())[-3:] == ["one ", "two ", "three"]


def test_an_invalid_delay_is_the_default(ask):
    began = time.monotonic()

    ask(built(model={**DEMO, "delay": "long"}), "Hi")

    assert time.monotonic() - began > 0.05


def test_it_reports_a_plausible_usage(run):
    usage = run(built(instructions="Greet."), "Hello there").usage

    assert usage.requests == 1
    assert usage.output_tokens > 5
