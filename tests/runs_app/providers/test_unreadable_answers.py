"""Answers that are not those of the Chat Completions API."""

import pytest

from tests.factories import AgentFactory, member
from tests.runs import chunks, start_run, wait_for_end
from tests.runs_app.providers.test_truncated_answers import delta

pytestmark = pytest.mark.usefixtures("idle_engine")

TEXT = delta({"role": "assistant", "content": "Good day."})
END = delta({}, "stop")
UNREADABLE = {
    "no object": [None, TEXT, END],
    "a list": [[1], TEXT, END],
    "a time in words": [{**TEXT, "created": "now"}, END],
    "a time without end": [{**TEXT, "created": 10**18}, END],
    "usage in words": [TEXT, END, {**delta({}), "choices": [], "usage": "many"}],
    "a finish reason that is an object": [TEXT, delta({}, {"why": "stop"})],
}


@pytest.fixture
def ask(event_server):
    """Return a function that runs an agent whose model answers with these events."""

    def ask(events, *, durable=True):
        event_server.streams["chat/completions"] = events
        agent = AgentFactory(model={"provider": "mistral", "name": "local"}, tools=["word-count"])
        return wait_for_end(start_run(agent, member("editor"), options={"durable": durable, "maxSteps": 1}))

    return ask


@pytest.mark.parametrize("durable", [True, False])
@pytest.mark.parametrize("events", UNREADABLE.values(), ids=UNREADABLE.keys())
def test_an_answer_that_cannot_be_read_is_no_error_of_the_application(ask, events, durable, caplog):
    run = ask(events, durable=durable)

    assert (run.status, run.error) == (
        "failed",
        "mistral/local returned an answer that cannot be used. "
        "It does not follow the Chat Completions API. Check its server.",
    )
    assert not [record for record in caplog.records if record.levelname == "ERROR"]


@pytest.mark.parametrize("durable", [True, False])
def test_a_server_may_number_its_tool_calls(ask, durable):
    call = {"index": 0, "id": 17, "type": "function", "function": {"name": "word-count", "arguments": '{"text": "a"}'}}

    run = ask([delta({"role": "assistant", "tool_calls": [call]}), delta({}, "tool_calls")], durable=durable)

    assert [chunk["payload"]["toolCallId"] for chunk in chunks(run, "tool-call", "tool-result")] == ["17", "17"]


@pytest.mark.parametrize("durable", [True, False])
def test_a_server_may_give_all_calls_the_first_index(ask, durable):
    def call(call_id, name, arguments):
        function = {"name": name, "arguments": arguments}
        return delta({"role": "assistant", "tool_calls": [{"index": 0, "id": call_id, "function": function}]})

    pieces = [
        call("a", "word-count", '{"text": "one'),
        call("a", None, ' two"}'),
        call("b", "word-count", '{"text": "o'),
        call(None, None, 'ne"}'),
        call("c", "word-count", '{"text": ""}'),
    ]
    run = ask([*pieces, delta({}, "tool_calls")], durable=durable)

    called = [chunk["payload"] for chunk in chunks(run, "tool-call")]
    assert [(call["toolCallId"], call["args"]["text"]) for call in called] == [
        ("a", "one two"),
        ("b", "one"),
        ("c", ""),
    ]


def test_a_negative_number_of_tokens_is_left_out(ask):
    details = {"completion_tokens_details": {"reasoning_tokens": -5}}
    usage = {"prompt_tokens": 5, "completion_tokens": 5, "total_tokens": 10, **details}

    run = ask([TEXT, END, {**delta({}), "choices": [], "usage": usage}])

    assert (run.status, run.output) == ("succeeded", "Good day.")
    assert min(run.usage.values()) >= 0


def test_an_answer_without_events_names_what_to_check(ask):
    run = ask([])

    assert run.error == (
        "mistral/local returned an answer that cannot be used. "
        "It had no event of an answer. Try again, or check the URL of its provider."
    )
