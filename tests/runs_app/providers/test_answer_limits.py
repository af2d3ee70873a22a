"""Answers of providers that are too large, or lines without an end."""

import asyncio
import gzip
import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_network

import pytest

from runs_app.engine.failures import run_failure_message
from runs_app.exceptions import find_run_error
from runs_app.providers import cached_providers
from runs_app.resolution import stored_agents
from tests.factories import AgentFactory, member
from tests.provider_stub.server import KEY, PROVIDERS
from tests.runs import start_run, wait_for_end
from tests.runs_app.conftest import running
from tests.runs_app.providers.test_requests import NAMES, PATHS
from tests.runs_app.providers.test_truncated_answers import STREAMS

pytestmark = pytest.mark.usefixtures("idle_engine")

MEGABYTE = 1024 * 1024
TOO_LARGE = "The answer of the provider is larger than 1 MB, so the run was stopped."
INVALID = "The provider sent an invalid stream of events, so the run was stopped."


class EndlessServer(BaseHTTPRequestHandler):
    """A server that answers with `server.beginning`, then repeats `server.unit` until nobody reads it."""

    protocol_version = "HTTP/1.1"

    def do_POST(self):
        self.server.bodies.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        self.server.requests.append(self.headers)
        self.send_response(self.server.status)
        for name, value in {"Content-Type": "text/event-stream", **self.server.headers}.items():
            self.send_header(name, value)
        self.send_header("Connection", "close")
        self.end_headers()
        try:
            for part in self.server.parts or [self.server.beginning]:
                self.wfile.write(part)
            for _ in range(self.server.repeats):
                self.wfile.write(self.server.unit)
                self.server.sent += len(self.server.unit)
        except OSError:  # the reader closed the connection
            self.close_connection = True

    def log_message(self, *_):
        pass


@pytest.fixture
def endless_server(settings):
    """Start a server for every provider that sends up to 400 MB."""
    with ThreadingHTTPServer(("127.0.0.1", 0), EndlessServer) as server:
        server.status, server.headers, server.beginning = 200, {}, b"data: "
        server.unit, server.repeats = b"x" * 65536, 6400
        server.sent, server.requests, server.bodies, server.parts = 0, [], [], []
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}"
        settings.MODEL_MAX_ANSWER = MEGABYTE
        settings.OUTBOUND_NETWORKS = [ip_network("127.0.0.0/8")]
        settings.MODEL_KEYS = dict.fromkeys(PROVIDERS, KEY)
        settings.MODEL_URLS = {"openai": f"{url}/v1", "anthropic": url, "google": url, "mistral": f"{url}/v1"}
        cached_providers.invalidate()
        yield server
        server.shutdown()
    cached_providers.invalidate()


def stored(provider):
    return AgentFactory(model={"provider": provider, "name": NAMES[provider]})


def error_of_whole_answer(agent):
    """Return the message of an answer that is not streamed."""
    built = stored_agents.get(agent.pk).build()
    with pytest.raises(Exception) as failed:
        asyncio.run(built.agent.run("Hello", deps=running()))
    assert find_run_error(failed.value) is not None
    return run_failure_message(failed.value, "The model")


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_streamed_line_without_an_end_is_not_read_whole(provider, endless_server):
    run = wait_for_end(start_run(stored(provider), member("editor")))

    assert (run.status, run.error) == ("failed", TOO_LARGE)
    assert endless_server.sent < 20 * MEGABYTE  # what the buffers of both sides hold
    assert len(endless_server.requests) == 1


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_whole_answer_without_an_end_is_not_read_whole(provider, endless_server):
    endless_server.headers, endless_server.beginning = {"Content-Type": "application/json"}, b'{"id": "'

    assert error_of_whole_answer(stored(provider)) == TOO_LARGE
    assert endless_server.sent < 60 * MEGABYTE


@pytest.mark.parametrize("provider", PROVIDERS)
def test_an_error_without_an_end_is_not_read_whole(provider, endless_server):
    endless_server.status = 400

    run = wait_for_end(start_run(stored(provider), member("editor")))

    assert (run.status, run.error) == ("failed", TOO_LARGE)
    assert endless_server.sent < 60 * MEGABYTE


def test_an_announced_length_is_refused_before_reading(endless_server):
    endless_server.headers = {"Content-Length": str(400 * MEGABYTE)}

    run = wait_for_end(start_run(stored("openai"), member("editor")))

    assert run.error == TOO_LARGE


def test_many_events_are_limited_together(endless_server):
    endless_server.unit = b'data: {"type": "ping"}\n\n' * 1000

    run = wait_for_end(start_run(stored("anthropic"), member("editor")))

    assert run.error == TOO_LARGE


@pytest.mark.parametrize("unit", [b":\n", b"\n:\r", b"data: x\n", b" \n", b"\r:\n"])
def test_an_event_without_an_end_is_not_collected(unit, endless_server, settings):
    settings.MODEL_MAX_ANSWER = 16 * MEGABYTE
    endless_server.beginning, endless_server.unit = b"", unit * 20_000
    started = time.process_time()

    run = wait_for_end(start_run(stored("anthropic"), member("editor")))

    assert (run.status, run.error) == ("failed", INVALID)
    assert time.process_time() - started < 10


def test_a_compressed_answer_is_refused(endless_server):
    endless_server.headers, endless_server.repeats = {"Content-Encoding": "gzip"}, 0
    endless_server.beginning = gzip.compress(b"x" * 100 * MEGABYTE)

    run = wait_for_end(start_run(stored("openai"), member("editor")))

    assert "compressed its answer" in run.error
    assert endless_server.requests[0]["Accept-Encoding"] == "identity"


@pytest.mark.parametrize("provider", PROVIDERS)
def test_small_parts_of_lines_are_put_together(provider, endless_server):
    (events,) = [events for path, events in STREAMS.items() if path in PATHS[provider]]
    names = [f"event: {event['type']}\n" if "type" in event else "" for event in events]
    text = "".join(f"{name}data: {json.dumps(event)}\n\n" for name, event in zip(names, events, strict=True)).encode()
    endless_server.parts = [text[start : start + 5] for start in range(0, len(text), 5)]
    endless_server.repeats = 0

    run = wait_for_end(start_run(stored(provider), member("editor")))

    assert run.output == "Half of an"


def test_an_error_page_with_many_lines_is_an_error_of_the_provider(endless_server):
    endless_server.status, endless_server.repeats = 502, 0
    endless_server.headers, endless_server.beginning = {"Content-Type": "text/html"}, b"<p>\n" * 500

    run = wait_for_end(start_run(stored("mistral"), member("editor")))

    assert "reported a server error (502)" in run.error
