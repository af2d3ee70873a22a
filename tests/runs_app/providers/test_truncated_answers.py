"""Answers without a finish reason, which are truncated."""

import pytest

from tests.factories import AgentFactory, member
from tests.runs import chunks, start_run, wait_for_end
from tests.runs_app.providers.test_requests import NAMES

pytestmark = pytest.mark.usefixtures("idle_engine")

TRUNCATED = "Half of an"


def delta(text, why=None):
    return {
        "id": "1",
        "object": "chat.completion.chunk",
        "created": 1,
        "model": "any",
        "choices": [{"index": 0, "delta": text, "finish_reason": why}],
    }


MESSAGE = {"id": "1", "type": "message", "role": "assistant", "content": [], "model": "any"}
RESPONSE = {"id": "1", "object": "response", "created_at": 1, "model": "any", "output": [], "status": "in_progress"}
ITEM = {"id": "2", "type": "message", "role": "assistant", "status": "in_progress", "content": []}
PART = {"output_index": 0, "content_index": 0, "item_id": "2"}
# The events of each API until the connection closes.
STREAMS = {
    "responses": [
        {
            "type": "response.created",
            "sequence_number": 0,
            "response": {**RESPONSE, "parallel_tool_calls": True, "tool_choice": "auto", "tools": []},
        },
        {"type": "response.output_item.added", "sequence_number": 1, "output_index": 0, "item": ITEM},
        {"type": "response.output_text.delta", "sequence_number": 2, "delta": TRUNCATED, "logprobs": [], **PART},
    ],
    "messages": [
        {"type": "message_start", "message": {**MESSAGE, "usage": {"input_tokens": 3, "output_tokens": 1}}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": TRUNCATED}},
    ],
    "streamGenerateContent": [
        {"candidates": [{"content": {"role": "model", "parts": [{"text": TRUNCATED}]}, "index": 0}]}
    ],
    "chat/completions": [delta({"role": "assistant", "content": TRUNCATED})],
}


@pytest.fixture
def disconnecting_server(event_server):
    """Let the server send the beginning of an answer. Tests may change the events."""
    event_server.streams = dict(STREAMS)
    return event_server


def request_fields(provider, **fields):
    agent = AgentFactory(model={"provider": provider, "name": NAMES[provider]}, **fields)
    return wait_for_end(start_run(agent, member("editor")))


@pytest.mark.parametrize("provider", ["openai", "anthropic", "google"])
def test_a_truncated_answer_is_an_error(provider, disconnecting_server):
    run = request_fields(provider)

    assert (run.status, run.output) == ("failed", TRUNCATED)
    assert run.error == "The answer of the model was cut off. Try again."
    assert chunks(run)[-1]["type"] == "error"


def test_output_processors_do_not_hide_a_truncated_answer(disconnecting_server):
    assert request_fields("openai", output_processors=[{"key": "trim"}]).status == "failed"


def test_a_server_without_finish_reasons_is_accepted(disconnecting_server):
    run = request_fields("mistral")

    assert (run.status, run.finish_reason, run.output) == ("succeeded", "unknown", TRUNCATED)
    assert chunks(run, "finish")[0]["payload"]["stepResult"]["reason"] == "unknown"


def test_the_finish_reason_of_a_server_is_used(disconnecting_server):
    disconnecting_server.streams["chat/completions"] = [delta({"content": "All."}), delta({}, "eos")]
    other = request_fields("mistral")
    disconnecting_server.streams["chat/completions"] = [delta({"content": "All."}), delta({}, "stop")]

    assert (request_fields("mistral").finish_reason, other.finish_reason) == ("stop", "stop")


def test_a_truncated_answer_calls_no_tool(disconnecting_server):
    call = {"type": "tool_use", "id": "1", "name": "word-count", "input": {}}
    disconnecting_server.streams["messages"] = [
        STREAMS["messages"][0],
        {"type": "content_block_start", "index": 0, "content_block": call},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": '{"text"'}},
    ]

    run = request_fields("anthropic", tools=["word-count"])

    assert run.status == "failed"
    assert chunks(run, "tool-call", "tool-result") == []
