"""Answers that fit a JSON Schema of the caller."""

import json

import pytest
from pydantic_ai.models.function import DeltaToolCall, FunctionModel

from agents_app.models import Agent
from agents_app.registry import Entry, Kind, processor, registry
from runs_app.api.generate_response import generate_response
from runs_app.models import AgentRun
from tests.api_client import Caller
from tests.factories import AgentFactory, api_key, member
from tests.runs import DEMO, chunks
from tests.runs_app.api.decisions.conftest import chunks as streamed_chunks

pytestmark = pytest.mark.usefixtures("idle_engine")

SCHEMA = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
    "required": ["city", "days"],
}
# Without references it would have a trillion parts.
DOUBLING = {f"d{level}": {"allOf": [{"$ref": f"#/$defs/d{level + 1}"}] * 2} for level in range(40)} | {"d40": {}}
TREE = {"$defs": {"A": {"type": "array", "items": {"$ref": "#/$defs/A"}}}}
PATH = "/api/agents/concierge/generate"


@pytest.fixture
def editor():
    AgentFactory(id="concierge", model=DEMO, tools=["word-count"])
    return Caller(api_key(member("editor")))


@pytest.mark.parametrize("durable", [True, False])
def test_the_answer_is_an_object_that_fits_the_schema(editor, durable):
    body = {"messages": "Lisbon for 3 days", "structuredOutput": {"schema": SCHEMA}, "durable": durable}
    answer = editor.post(PATH, body)

    run = AgentRun.objects.get()
    assert answer.status_code == 200, answer.body
    assert answer.body["object"] == {"city": "Lisbon for 3 days", "days": 3}
    assert (answer.body["finishReason"], answer.body["toolCalls"], answer.body["warnings"]) == ("stop", [], [])
    assert chunks(run, "object-result")[0]["payload"] == {"object": answer.body["object"]}
    assert chunks(run, "step-finish")[-1]["payload"]["stepResult"]["reason"] == "stop"


def test_a_network_answers_with_the_object_and_its_json(editor):
    body = {"messages": "Lisbon for 3 days", "structuredOutput": {"schema": SCHEMA}}
    answer = editor.client.post("/api/agents/concierge/network", body, content_type="application/json")

    sent = streamed_chunks(answer)
    trip = {"city": "Lisbon for 3 days", "days": 3}
    assert [chunk["type"] for chunk in sent[-4:]] == [
        "network-object-result",
        "routing-agent-end",
        "network-execution-event-finish",
        "network-execution-event-step-finish",
    ]
    assert sent[-4]["payload"] == {"object": trip}
    assert sent[-2]["payload"]["object"] == trip
    assert json.loads(sent[-1]["payload"]["result"]) == trip


@pytest.mark.parametrize("durable", [True, False])
def test_output_processors_change_the_texts_of_the_object(editor, durable):
    Agent.objects.get(pk="concierge").edit({"output_processors": [{"key": "mask-email"}, {"key": "exclaim"}]})

    @processor("exclaim")
    def exclaim(text):
        return f"{text}!"

    body = {"messages": "ada@example.org for 3 days", "structuredOutput": {"schema": SCHEMA}, "durable": durable}
    answer = editor.post(PATH, body)

    assert answer.body["object"] == {"city": "[e-mail] for 3 days!", "days": 3}
    run = AgentRun.objects.get()
    assert "ada@example" not in f"{run.output}{chunks(run)}{[step.result for step in run.steps.all()]}"


@pytest.mark.parametrize("durable", [True, False])
def test_an_object_that_does_not_fit_is_asked_for_again(editor, durable):
    schema = {**SCHEMA, "properties": {**SCHEMA["properties"], "city": {"type": "string", "pattern": "refused"}}}
    body = {"messages": "Lisbon for 3 days", "structuredOutput": {"schema": schema}, "durable": durable}

    answer = editor.post(PATH, body).body

    assert "refused" in answer["object"]["city"]
    assert len(answer["steps"]) == 2
    run = AgentRun.objects.get()
    assert len(chunks(run, "object-result")) == 1
    ends = [chunk["payload"]["stepResult"]["isContinued"] for chunk in chunks(run, "step-finish")]
    assert ends == [True, False]


@pytest.mark.parametrize("durable", [True, False])
def test_a_run_fails_whose_answer_still_does_not_fit(editor, durable):
    schema = {**SCHEMA, "properties": {**SCHEMA["properties"], "days": {"type": "integer", "minimum": 100}}}
    body = {"messages": "Lisbon for 3 days", "structuredOutput": {"schema": schema}, "durable": durable}

    answer = editor.post(PATH, body)

    run = AgentRun.objects.get()
    expected = "The answer of the model does not fit the schema. days: 3 is less than the minimum of 100."
    assert (run.status, run.error) == ("failed", expected)
    assert answer.body["error"] == expected
    assert not chunks(run, "object-result")


@pytest.mark.parametrize(
    ("days", "definitions"),
    [
        ({"$ref": "#/$defs/Days"}, {"$defs": {"Days": {"type": "integer"}}}),
        ({"$ref": "#/definitions/Days"}, {"definitions": {"Days": {"type": "integer"}}}),
        ({"$ref": "#/definitions/Day%20count"}, {"definitions": {"Day count": {"type": "integer"}}}),
        ({"$ref": "#/$defs/Days", "description": "How long"}, {"$defs": {"Days": {"type": "integer"}}}),
        ({"type": "integer", "$ref": "#/$defs/Few"}, {"$defs": {"Few": {"maximum": 9}}}),
        ({"$ref": "#/$defs/A"}, {"$defs": {"A": {"$ref": "#/$defs/B"}, "B": {"type": "integer"}}}),
        ({"type": "integer"}, {"properties": {"$ref": {"type": "string"}, "nights": {"$ref": "#/properties/days"}}}),
    ],
)
def test_references_within_the_schema_are_followed(editor, days, definitions):
    properties = {"city": {"type": "string"}, "days": days, **definitions.get("properties", {})}
    schema = {**SCHEMA, **definitions, "properties": properties}

    answer = editor.post(PATH, {"messages": "Lisbon for 3 days", "structuredOutput": {"schema": schema}})

    assert answer.body["object"] == {"city": "Lisbon for 3 days", "days": 3}


def test_tools_are_called_before_the_answer(editor):
    body = {"messages": "Use word-count on this", "structuredOutput": {"schema": SCHEMA}}
    answer = editor.post(PATH, body).body

    assert [step["finishReason"] for step in answer["steps"]] == ["tool-calls", "stop"]
    assert answer["object"]["city"].startswith("word-count says")


def test_a_model_writes_the_properties_in_the_order_in_which_they_are_required(editor):
    """PostgreSQL sorts the properties of what it stores."""
    properties = {"score": {"type": "string"}, "reason": {"type": "string"}}
    schema = {"type": "object", "properties": properties, "required": ["reason", "score"]}
    seen = []

    async def answer(messages, info):
        seen.extend(
            [*tool.parameters_json_schema["properties"]] for tool in (*info.output_tools, *info.function_tools)
        )
        yield {0: DeltaToolCall("structured_output", '{"reason": "Good.", "score": "1"}', tool_call_id="one")}

    def build_model(name, choice):
        return FunctionModel(stream_function=answer)

    registry.add(Entry(Kind.MODEL_PROVIDER, "noting", "Noting", target=build_model))
    Agent.objects.get(pk="concierge").edit({"model": {"provider": "noting", "name": "any"}, "tools": []})
    body = {"messages": "Go", "structuredOutput": {"schema": schema}, "clientTools": {"note": {"inputSchema": schema}}}

    answered = editor.post(PATH, body)

    assert answered.body["object"] == {"reason": "Good.", "score": "1"}
    assert seen == [["reason", "score"]] * 2


@pytest.mark.parametrize("durable", [True, False])
@pytest.mark.parametrize("tools", [["word-count"], ["place"]], ids=["of the agent", "of the client"])
def test_a_model_may_answer_and_call_a_tool_at_once(editor, tools, durable):
    """Let the answer end the run, although the model calls a tool with it."""

    async def answer(messages, info):
        calls = [("structured_output", '{"city": "Lisbon", "days": 3}'), *((name, '{"text": "x"}') for name in tools)]
        yield {index: DeltaToolCall(*call, tool_call_id=call[0]) for index, call in enumerate(calls)}

    def build_model(name, choice):
        return FunctionModel(stream_function=answer)

    registry.add(Entry(Kind.MODEL_PROVIDER, "hasty", "Hasty", target=build_model))
    Agent.objects.get(pk="concierge").edit({"model": {"provider": "hasty", "name": "any"}})
    body = {"messages": "Go", "structuredOutput": {"schema": SCHEMA}, "durable": durable, "clientTools": {"place": {}}}

    answered = editor.post(PATH, body).body

    assert (answered["object"]["city"], answered["finishReason"]) == ("Lisbon", "stop")
    assert [call["payload"]["toolName"] for call in answered["toolCalls"]] == tools
    run = AgentRun.objects.get()
    kinds = [chunk["type"] for chunk in chunks(run, "tool-result", "step-finish", "object-result", "finish")]
    assert kinds == ["tool-result", "step-finish", "object-result", "finish"]
    assert not chunks(run, "step-finish")[0]["payload"]["stepResult"]["isContinued"]


def test_the_finish_reason_of_the_provider_hides_no_object(editor):
    editor.post(PATH, {"messages": "Lisbon for 3 days", "structuredOutput": {"schema": SCHEMA}})
    AgentRun.objects.update(finish_reason="unknown")  # of servers that send none

    assert generate_response(AgentRun.objects.get())["object"] == {"city": "Lisbon for 3 days", "days": 3}


def test_a_text_has_no_object(editor):
    assert editor.post(PATH, {"messages": "Hello"}).body["object"] is None


@pytest.mark.parametrize(
    ("value", "field"),
    [
        ("all", "structuredOutput"),
        ({}, "structuredOutput.schema"),
        ({"schema": []}, "structuredOutput.schema"),
        ({"schema": {"type": "array"}}, "structuredOutput.schema"),
        ({"schema": {"type": "object", "properties": 7}}, "structuredOutput.schema"),
        ({"schema": {**SCHEMA, "description": "x" * 66_000}}, "structuredOutput.schema"),
        (
            {"schema": {"type": "object", "properties": {"a": {"$ref": "http://elsewhere/x"}}}},
            "structuredOutput.schema",
        ),
        ({"schema": {**SCHEMA, "properties": {"a": {"$ref": "#/$defs/Missing"}}}}, "structuredOutput.schema"),
        (
            {"schema": {"type": "object", "properties": {"a": {"$ref": "#/$defs/A"}}, **TREE}},
            "structuredOutput.schema",
        ),
        ({"schema": {**SCHEMA, "unevaluatedProperties": False, "patternProperties": {}}}, "structuredOutput.schema"),
        ({"schema": {**SCHEMA, "properties": {"a": {"$ref": "#/required"}}}}, "structuredOutput.schema"),
        ({"schema": {**SCHEMA, "$ref": "#/x", "x": {"properties": [1]}}}, "structuredOutput.schema"),
        ({"schema": {**SCHEMA, "patternProperties": {"(" * 3000: {}}}}, "structuredOutput.schema"),
        ({"schema": {**SCHEMA, "patternProperties": {"a{99999999999}": {}}}}, "structuredOutput.schema"),
        ({"schema": {"type": "object", "$ref": "#/$defs/d0", "$defs": DOUBLING}}, "structuredOutput.schema"),
        ({"schema": SCHEMA, "model": "gpt"}, "structuredOutput.model"),
    ],
)
def test_an_invalid_schema_is_refused_and_starts_no_run(editor, value, field):
    answer = editor.post(PATH, {"messages": "Hello", "structuredOutput": value})

    assert (answer.status_code, [issue["field"] for issue in answer.body["issues"]]) == (400, [field])
    assert not AgentRun.objects.exists()
