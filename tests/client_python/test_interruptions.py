"""Experiments of the Python client that are interrupted while the server starts them, and servers that are busy."""

import threading
import uuid
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import httpx
import pytest
from agentcms_client import Call, Client
from agentcms_client.command import main

from tests.runs import LONG, SLOW
from tests.served import Served, wait_until

REFUSAL = b'{"error": "Too many requests.", "code": "throttled"}'


class Interrupted(httpx.BaseTransport):
    """Connections in which Ctrl-C comes while the request that starts an experiment is on its way."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds  # until the request reaches the server
        self.inner = httpx.HTTPTransport()
        self.requests: list[threading.Timer] = []

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        if not (request.method == "POST" and request.url.path.endswith("/experiments")):
            return self.inner.handle_request(request)
        request.read()
        self.requests.append(threading.Timer(self.seconds, self.inner.handle_request, [request]))
        self.requests[0].start()
        if not self.seconds:
            self.requests[0].join()
        raise KeyboardInterrupt


@pytest.mark.parametrize("seconds", [0, 1], ids=["after it arrived", "before it arrives"])
def test_an_interruption_of_the_start_cancels_the_experiment(served: Served, seconds):
    key = f"interrupted-{uuid.uuid4().hex[:8]}"
    with Client(served.base_url, served.keys["python"]) as cms:
        dataset = cms.send(Call("POST", "/api/datasets", body={"name": key}))["id"]
        cms.send(Call("POST", f"/api/datasets/{dataset}/items", body={"input": LONG}))
        cms.create_agent(key, name="Slow", model=SLOW, instructions="")
        transport = Interrupted(seconds)
        with (
            Client(served.base_url, served.keys["python"], transport=transport) as interrupted,
            pytest.raises(KeyboardInterrupt),
        ):
            interrupted.experiments.run(dataset, key)
        transport.requests[0].join()

        def is_cancelled():
            (experiment,) = cms.send(Call("GET", f"/api/datasets/{dataset}/experiments"))["experiments"]
            return experiment["metadata"] == {"cancelled": True}

        wait_until(is_cancelled, 30, "the end of the experiment")


@pytest.fixture
def busy_server(monkeypatch):
    """Start a server that refuses each request for now. Return the requests that it got."""
    requests = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            requests.append(self.path)
            self.send_response(429)
            for name, value in (("Retry-After", "0"), ("Content-Length", str(len(REFUSAL)))):
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(REFUSAL)

        def log_message(self, *args):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        monkeypatch.setenv("AGENTCMS_URL", f"http://127.0.0.1:{server.server_port}")
        monkeypatch.setenv("AGENTCMS_API_KEY", "key")
        yield requests
        server.shutdown()


def test_a_server_that_is_busy_for_long_exits_with_4(busy_server, capsys):
    code = main(["run_experiment", "exam", "--agent", "clerk"])

    message = capsys.readouterr().err
    assert (code, len(busy_server)) == (4, 5)
    assert message.startswith(
        "Too many requests.\nThe server refused the request with the status 429, again and again."
    )
