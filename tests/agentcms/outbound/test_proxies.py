"""Proxies that the environment names. No client uses one: it would connect to addresses that nobody checked."""

import asyncio
import socket
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_network
from threading import Thread

import pytest

from agentcms.vectors import EmbedderFailed, find_embedder
from knowledge_app.documents.fetching import fetch_document
from runs_app.notices.webhook import post
from runs_app.providers import cached_providers
from runs_app.providers.models import http_client
from tools_app.mcp.cached_servers import server_from_row
from tools_app.mcp.calls import list_tools
from tools_app.mcp.errors import McpError
from tools_app.models import McpServer


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        self.server.paths.append(self.path)
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.send_response(200)
        self.send_header("Content-Type", "text/plain")
        self.end_headers()
        self.wfile.write(b"Good evening.")

    do_POST = do_GET

    def log_message(self, *args):
        pass


@pytest.fixture
def server(settings):
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.paths = []
        Thread(target=server.serve_forever, daemon=True).start()
        settings.OUTBOUND_NETWORKS = [ip_network("127.0.0.0/8")]
        yield server
        server.shutdown()


@pytest.fixture
def proxy(monkeypatch):
    """Name a proxy in all variables that clients read, and return its socket."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.setblocking(False)
        for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
            for variable in (name, name.lower()):
                monkeypatch.setenv(variable, f"http://127.0.0.1:{listener.getsockname()[1]}")
        yield listener


def ask_model(url, settings):
    async def ask():
        async with http_client.__wrapped__() as client:
            return await client.get(url)

    assert asyncio.run(ask()).text == "Good evening."


def embed(url, settings):
    settings.MODEL_KEYS, settings.MODEL_URLS = {"openai": "sk-test-0123456789"}, {"openai": url}
    cached_providers.invalidate()
    with suppress(EmbedderFailed):
        find_embedder("openai/text-embedding-3-small").embed(["One"], "document")
    cached_providers.invalidate()


def send_webhook(url, settings):
    assert post(url, {}, b"{}") == 200


def fetch(url, settings):
    assert fetch_document(url).content == b"Good evening."


def ask_mcp_server(url, settings):
    with suppress(McpError):
        asyncio.run(list_tools(server_from_row(McpServer(key="office", title="Office", url=url))))


@pytest.mark.django_db
@pytest.mark.parametrize("act", [ask_model, embed, send_webhook, fetch, ask_mcp_server])
def test_no_client_uses_a_proxy_of_the_environment(server, proxy, settings, act):
    act(f"http://127.0.0.1:{server.server_port}/v1", settings)

    assert server.paths
    assert all(path.startswith("/v1") for path in server.paths)  # a proxy would get the whole URL
    with pytest.raises(BlockingIOError):
        proxy.accept()
