"""The IDs of tool calls, which some servers repeat."""

from uuid import UUID

import pytest
from pydantic_ai.messages import ModelRequest, ModelResponse, TextPart, ToolCallPart, ToolReturnPart, UserPromptPart

from runs_app.building.call_ids import count_call_ids, with_unique_call_ids
from runs_app.engine.context import RunDeps
from runs_app.engine.journaling.step_input import message_outline
from runs_app.models.pending_call import MAX_CALL_ID_LENGTH, split_call_id, step_call_key, stored_call_id
from tests.factories import AgentFactory, member
from tests.runs import DEMO, chunks, start_run, wait_for_end

RUN = UUID("01a22704-3258-7c06-94f4-bf5aabd34c5b")


@pytest.fixture
def deps():
    return RunDeps(RUN, "concierge", "", None, None)


def answer(*ids):
    return ModelResponse([TextPart("I count."), *(ToolCallPart("count", {"number": 1}, call_id) for call_id in ids)])


def ids(message):
    return [part.tool_call_id for part in message.tool_calls]


def test_ids_that_differ_stay_as_they_are(deps):
    response = answer("a", "b")

    assert with_unique_call_ids(response, [answer("c")], deps) is response


def test_a_repeated_id_is_numbered_in_its_run(deps):
    first = with_unique_call_ids(answer("c", "c"), [], deps)
    second = with_unique_call_ids(answer("c"), [first], deps)

    assert [*ids(first), *ids(second)] == ["c", "c_rbf5aabd34c5b-2", "c_rbf5aabd34c5b-3"]
    assert first.text == "I count."


def test_an_id_of_an_earlier_run_is_not_used_again(deps):
    response = with_unique_call_ids(answer("c"), [answer("c"), ModelRequest([UserPromptPart("Again")])], deps)

    assert ids(response) == ["c_rbf5aabd34c5b-1"]


def test_a_later_segment_goes_on_with_the_numbers(deps):
    first = with_unique_call_ids(answer("c", "c"), [], deps)
    deps.call_numbers = count_call_ids([first])

    assert ids(with_unique_call_ids(answer("c"), [first], deps)) == ["c_rbf5aabd34c5b-3"]


def test_the_keys_and_marks_of_steps_are_those_of_the_previous_release(deps):
    calls = with_unique_call_ids(answer("c", "c"), [], deps)
    results = ModelRequest([ToolReturnPart("count", 1, call_id) for call_id in ids(calls)])
    before = [answer("c", "c"), ModelRequest([ToolReturnPart("count", 1, "c"), ToolReturnPart("count", 1, "c")])]

    assert [step_call_key(call_id) for call_id in ids(calls)] == ["c", "c/2"]
    assert [*message_outline([calls, results])] == [*message_outline(before)]


def test_a_long_id_keeps_its_number_where_it_is_stored(deps):
    long_id = "x" * 1000
    stored = [stored_call_id(call_id) for call_id in ids(with_unique_call_ids(answer(long_id, long_id), [], deps))]

    assert stored[0] == stored_call_id(long_id)
    assert split_call_id(stored[1]) == (stored[0], 2)
    assert len(stored[1]) <= MAX_CALL_ID_LENGTH


@pytest.mark.usefixtures("idle_engine")
@pytest.mark.parametrize("durable", [True, False])
def test_each_run_of_a_conversation_calls_tools_with_ids_of_its_own(durable):
    agent = AgentFactory(model=DEMO, tools=["word-count"], memory="last-messages")
    editor, text = member("editor"), 'Use word-count {"text": "one two"}'

    runs = [wait_for_end(start_run(agent, editor, text, thread="t", options={"durable": durable})) for _ in range(3)]

    called = [chunk["payload"]["toolCallId"] for run in runs for chunk in chunks(run, "tool-call")]
    assert len({*called}) == len(runs)
    assert [chunk["payload"]["toolCallId"] for run in runs for chunk in chunks(run, "tool-result")] == called
