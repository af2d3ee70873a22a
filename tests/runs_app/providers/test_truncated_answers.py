"""Answers without a finish reason, which are truncated."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_network

import pytest

from runs_app.providers import table
from tests.factories import AgentFactory, member
from tests.provider_stub.server import KEY, PROVIDERS
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


class DisconnectingServer(BaseHTTPRequestHandler):
    """A server that closes the connection in the middle of an answer."""

    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        events = next(events for path, events in self.server.streams.items() if path in self.path)
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        for event in events:
            name = f"event: {event['type']}\n" if "type" in event else ""
            self.wfile.write(f"{name}data: {json.dumps(event)}\n\n".encode())

    def log_message(self, *_):
        pass


@pytest.fixture
def disconnecting_server(settings):
    """Start a server for every provider, whose events can be changed."""
    with ThreadingHTTPServer(("127.0.0.1", 0), DisconnectingServer) as server:
        server.streams = dict(STREAMS)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}"
        settings.OUTBOUND_NETWORKS = [ip_network("127.0.0.0/8")]
        settings.MODEL_KEYS = dict.fromkeys(PROVIDERS, KEY)
        settings.MODEL_URLS = {"openai": f"{url}/v1", "anthropic": url, "google": url, "mistral": f"{url}/v1"}
        table.invalidate()
        yield server
        server.shutdown()
    table.invalidate()


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
