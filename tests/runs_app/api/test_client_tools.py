"""Tools that the caller runs itself."""

import pytest

from agents_app.configuration.schema import ConfigError
from agents_app.registry import tool
from runs_app.requests import body
from tests.api_client import Caller
from tests.factories import AgentFactory, api_key, member
from tests.runs import DEMO, chunks, start_run, wait_for_end

pytestmark = pytest.mark.usefixtures("idle_engine")

PLACE = [{"name": "current-place", "description": "Where the caller is.", "schema": {"type": "object"}}]
SCHEMA_FAULTS = ["no type", "no arguments", "no properties", "no property", "no names", "no list"]
ASK = [{"role": "user", "content": "Use current-place"}]


@pytest.fixture
def editor():
    return member("editor")


def result(run, value="Lisbon"):
    """Return the message with a tool result."""
    call = chunks(run, "tool-call")[-1]["payload"]
    part = {"type": "tool-result", "toolCallId": call["toolCallId"], "toolName": call["toolName"], "result": value}
    return {"role": "tool", "content": [part]}


def call_of(run):
    call = chunks(run, "tool-call")[-1]["payload"]
    part = {"type": "tool-call", "toolCallId": call["toolCallId"], "toolName": call["toolName"], "args": {}}
    return {"role": "assistant", "content": [part]}


def test_a_client_tool_call_ends_the_run(editor):
    run = wait_for_end(start_run(AgentFactory(model=DEMO), editor, ASK, client_tools=PLACE))

    assert (run.status, run.finish_reason) == ("succeeded", "tool-calls")
    assert [call["payload"]["toolName"] for call in chunks(run, "tool-call")] == ["current-place"]
    assert chunks(run, "tool-result") == []
    assert chunks(run, "finish")[0]["payload"]["stepResult"]["reason"] == "tool-calls"
    (end,) = chunks(run, "step-finish")
    assert end["payload"]["stepResult"] == {"reason": "tool-calls", "isContinued": False, "warnings": []}


def test_a_call_of_a_client_tool_can_be_required(editor):
    options = {"toolChoice": {"type": "tool", "toolName": "current-place"}}
    agent = AgentFactory(model=DEMO, tools=["word-count"], memory={"options": {"workingMemory": {"enabled": True}}})

    run = wait_for_end(start_run(agent, editor, "Hello", client_tools=PLACE, options=options))

    assert (run.error, [call["payload"]["toolName"] for call in chunks(run, "tool-call")]) == ("", ["current-place"])


def test_the_result_continues_the_conversation(editor):
    agent = AgentFactory(model=DEMO)
    first = wait_for_end(start_run(agent, editor, ASK, client_tools=PLACE))

    run = wait_for_end(start_run(agent, editor, [*ASK, call_of(first), result(first)], client_tools=PLACE))

    assert (run.status, run.finish_reason) == ("succeeded", "stop")
    assert "Lisbon" in run.output


def test_a_thread_supplies_the_call_of_a_single_result(editor):
    agent = AgentFactory(model=DEMO, memory="last-messages")
    first = wait_for_end(start_run(agent, editor, ASK, client_tools=PLACE, thread="t"))

    run = wait_for_end(start_run(agent, editor, [result(first)], client_tools=PLACE, thread="t"))

    assert (run.error, run.finish_reason) == ("", "stop")
    assert "Lisbon" in run.output
    assert [message.data["kind"] for message in run.thread.messages.all()] == [
        "request",
        "response",
        "request",
        "response",
    ]


def test_a_thread_keeps_a_conversation_once_that_the_client_sends_again(editor):
    agent = AgentFactory(model=DEMO, memory="last-messages")
    first = wait_for_end(start_run(agent, editor, ASK, client_tools=PLACE, thread="t"))

    run = wait_for_end(start_run(agent, editor, [*ASK, call_of(first), result(first)], client_tools=PLACE, thread="t"))

    assert (run.error, run.finish_reason) == ("", "stop")
    assert "Lisbon" in run.output
    assert [message.data["kind"] for message in run.thread.messages.all()] == [
        "request",
        "response",
        "request",
        "response",
    ]


def test_a_thread_completes_the_results_of_the_client(editor):
    """A client may answer only one of the calls, and the model needs a result for each."""
    agent = AgentFactory(model=DEMO, memory="last-messages")
    both = [*PLACE, {**PLACE[0], "name": "current-time"}]
    ask = "Use current-place and current-time"
    first = wait_for_end(start_run(agent, editor, ask, client_tools=both, thread="t"))
    assert len(chunks(first, "tool-call")) == len(both)

    run = wait_for_end(start_run(agent, editor, [result(first)], client_tools=both, thread="t"))

    assert run.error == ""
    called, answered = [
        {
            part["tool_call_id"]
            for message in run.thread.messages.all()
            for part in message.data["parts"]
            if part["part_kind"] == kind
        }
        for kind in ("tool-call", "tool-return")
    ]
    assert called == answered


def test_a_result_without_its_call_is_accepted(editor):
    agent = AgentFactory(model=DEMO)
    first = wait_for_end(start_run(agent, editor, ASK, client_tools=PLACE))

    run = wait_for_end(start_run(agent, editor, [result(first)], client_tools=PLACE))

    assert "Lisbon" in run.output


def test_a_call_without_a_result_has_none(editor):
    agent = AgentFactory(model=DEMO)
    first = wait_for_end(start_run(agent, editor, ASK, client_tools=PLACE))

    run = wait_for_end(start_run(agent, editor, [*ASK, call_of(first), {"role": "user", "content": "Never mind"}]))

    assert run.status == "succeeded"
    assert "The client sent no result" in run.output


def test_a_client_tool_cannot_have_the_name_of_an_agent_tool(editor):
    AgentFactory(id="helper", model=DEMO)
    AgentFactory(
        id="concierge", model=DEMO, tools=["word-count", "gone"], workflows=["triage-ticket"], agents=["helper"]
    )
    names = ["word-count", "workflow-triage-ticket", "agent-helper", "helper", "gone"]
    body = {"messages": "Hello", "clientTools": {name: {} for name in names}}

    answer = Caller(api_key(editor)).post("/api/agents/concierge/generate", body)

    assert answer.status_code == 400
    assert answer.body["issues"] == [
        {
            "field": f"clientTools.{name}",
            "message": "The agent already has a tool with this name. Rename your tool.",
        }
        for name in names[:3]
    ]


def test_a_client_tool_cannot_have_the_name_of_the_tool_of_answers(editor):
    AgentFactory(id="concierge", model=DEMO)
    body = {"messages": "Hello", "clientTools": {"structured_output": {}}}

    answer = Caller(api_key(editor)).post("/api/agents/concierge/generate", body)

    assert (answer.status_code, answer.body["issues"][0]["field"]) == (400, "clientTools.structured_output")


def test_a_tool_with_the_name_of_the_tool_of_answers_gets_another_name(editor):
    @tool("structured_output")
    def structured_output() -> str:
        return "A table."

    agent = AgentFactory(model=DEMO, tools=["structured_output", "word-count"])
    schema = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}

    run = wait_for_end(start_run(agent, editor, "Hello", options={"structuredOutput": {"schema": schema}}))

    assert (run.error, run.output) == ("", '{"text": "Hello"}')


def test_a_schema_of_an_earlier_draft_is_accepted():
    schema = {
        "type": ["object", "null"],
        "properties": {"pair": {"type": "array", "items": [{"type": "string"}, True]}, "x": {"minimum": None}},
        "definitions": {"count": {"type": "integer", "minimum": 0, "exclusiveMinimum": True}},
    }

    assert body.parse_client_tools({"x": {"inputSchema": schema}})[0]["schema"] == schema


def test_an_unregistered_tool_reserves_no_name(editor):
    tool = [{**PLACE[0], "name": "gone"}]

    run = wait_for_end(start_run(AgentFactory(model=DEMO, tools=["gone"]), editor, "Use gone", client_tools=tool))

    assert (run.status, run.finish_reason) == ("succeeded", "tool-calls")


@pytest.mark.parametrize(
    ("tools", "path"),
    [
        ([], "clientTools"),
        ({"a b": {}}, "clientTools.a b"),
        ({"x": 7}, "clientTools.x"),
        ({"x": {"inputSchema": []}}, None),
        ({"x": {"inputSchema": "text"}}, "clientTools.x"),
        ({"x": {"description": 7}}, "clientTools.x"),
        ({"x": {"inputSchema": {"type": 5}}}, "clientTools.x.inputSchema.type"),
        ({"x": {"inputSchema": {"type": "string"}}}, "clientTools.x.inputSchema.type"),
        ({"x": {"inputSchema": {"properties": 5}}}, "clientTools.x.inputSchema.properties"),
        ({"x": {"parameters": {"properties": {"a": 5}}}}, "clientTools.x.parameters.properties.a"),
        ({"x": {"inputSchema": {"required": "a"}}}, "clientTools.x.inputSchema.required"),
        ({"x": {"inputSchema": {"items": [{"anyOf": {}}]}}}, "clientTools.x.inputSchema.items[0].anyOf"),
        ({f"t{n}": {} for n in range(129)}, "clientTools"),
    ],
    ids=[
        "a list",
        "an odd name",
        "no object",
        "an empty schema",
        "a schema of text",
        "a number",
        *SCHEMA_FAULTS,
        "too many",
    ],
)
def test_invalid_client_tools_are_refused(tools, path):
    if path is None:
        assert body.parse_client_tools(tools)[0]["schema"] == {"type": "object", "properties": {}}
        return
    with pytest.raises(ConfigError) as refused:
        body.parse_client_tools(tools)
    assert refused.value.issues[0].field == path
