"""The stub server of providers, and one that sends any events."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_network

import pytest

from runs_app.providers import cached_providers
from tests.provider_stub.server import KEY, PROVIDERS, ProviderStub, run_provider_stub


@pytest.fixture(scope="session")
def running_provider_stub(tmp_path_factory) -> ProviderStub:
    with run_provider_stub(tmp_path_factory.mktemp("models") / "log") as server:
        yield server


@pytest.fixture
def provider_stub(running_provider_stub, settings) -> ProviderStub:
    """Configure the stub server for every provider and clear its requests."""
    running_provider_stub.forget()
    settings.OUTBOUND_NETWORKS = [ip_network("127.0.0.0/8")]
    settings.MODEL_KEYS = dict.fromkeys(PROVIDERS, KEY)
    settings.MODEL_URLS = running_provider_stub.urls
    cached_providers.invalidate()
    yield running_provider_stub
    cached_providers.invalidate()


class EventServer(BaseHTTPRequestHandler):
    """A server that sends the events of `streams`, by a part of the path, and closes the connection.

    An iterator has those of each request. `keys` are the API keys that it received.
    """

    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        self.server.keys.append(self.headers.get("Authorization", "").removeprefix("Bearer "))
        events = next(events for path, events in self.server.streams.items() if path in self.path)
        events = next(events) if isinstance(events, Iterator) else events
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        for event in events:
            name = f"event: {event['type']}\n" if isinstance(event, dict) and "type" in event else ""
            self.wfile.write(f"{name}data: {json.dumps(event)}\n\n".encode())

    def log_message(self, *_):
        pass


@pytest.fixture
def event_server(settings):
    """Start a server for every provider, whose events a test sets."""
    with ThreadingHTTPServer(("127.0.0.1", 0), EventServer) as server:
        server.streams, server.keys = {}, []
        threading.Thread(target=server.serve_forever, daemon=True).start()
        server.url = url = f"http://127.0.0.1:{server.server_port}"
        settings.OUTBOUND_NETWORKS = [ip_network("127.0.0.0/8")]
        settings.MODEL_KEYS = dict.fromkeys(PROVIDERS, KEY)
        settings.MODEL_URLS = {"openai": f"{url}/v1", "anthropic": url, "google": url, "mistral": f"{url}/v1"}
        cached_providers.invalidate()
        yield server
        server.shutdown()
    cached_providers.invalidate()
