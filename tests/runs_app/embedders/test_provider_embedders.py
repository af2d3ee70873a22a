"""Embedders of model providers, against a server on this machine."""

import json
import time
from contextlib import suppress
from http.server import BaseHTTPRequestHandler

import numpy as np
import pytest
from django.db import connections

from agentcms.vectors import EmbedderFailed, UnknownEmbedder, find_embedder
from runs_app.embedders import provider_embedders

pytestmark = pytest.mark.django_db

KEY = "sk-test-0123456789"


class EmbeddingServer(BaseHTTPRequestHandler):
    status, requests, vector = 200, [], [3.0, 4.0, 0.0]

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.requests.append((self.path, self.headers["Authorization"], body))
        data = [{"object": "embedding", "index": n, "embedding": self.vector} for n in range(len(body["input"]))]
        usage = {"prompt_tokens": 3, "total_tokens": 3}
        answer = {"object": "list", "data": data, "model": body["model"], "usage": usage}
        content = json.dumps(answer if self.status == 200 else {"error": {"message": f"wrong key {KEY}"}}).encode()
        self.send_response(self.status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *args):
        pass


@pytest.fixture
def server(serving_embedder, settings):
    def configure(address):
        settings.MODEL_KEYS = {"openai": KEY, "mistral": "", "anthropic": KEY}
        settings.MODEL_URLS = {"openai": f"{address}/v1"}

    with serving_embedder(EmbeddingServer, configure) as server:
        yield server


def test_texts_are_embedded_with_the_key_of_the_provider(server):
    rows = find_embedder("openai/text-embedding-3-small").embed(["One", "Two"], "document")

    np.testing.assert_allclose(rows, [[0.6, 0.8, 0], [0.6, 0.8, 0]], atol=1e-6)
    ((path, authorization, body),) = EmbeddingServer.requests
    assert (path, authorization) == ("/v1/embeddings", f"Bearer {KEY}")
    assert (body["model"], body["input"]) == ("text-embedding-3-small", ["One", "Two"])


def test_an_error_of_the_provider_names_its_status_and_no_key(server, monkeypatch, caplog):
    monkeypatch.setattr(EmbeddingServer, "status", 401)

    with pytest.raises(EmbedderFailed, match="status 401") as error:
        find_embedder("openai/any").embed(["One"], "query")

    assert KEY not in str(error.value) + caplog.text


@pytest.mark.parametrize("vector", [[], [None, 1.0], [float("nan"), 1.0], ["x", 1.0], None])
def test_an_answer_without_numbers_is_a_failure(server, monkeypatch, vector):
    monkeypatch.setattr(EmbeddingServer, "vector", vector)

    with pytest.raises(EmbedderFailed, match=r"returned no vector for a text|did not answer"):
        find_embedder("openai/any").embed(["One"], "query")


def test_an_answer_without_an_end_is_given_up_in_time(server, monkeypatch):
    def trickle(self):
        self.send_response(200)
        self.end_headers()
        with suppress(OSError):
            while True:
                self.wfile.write(b" ")
                time.sleep(0.1)

    monkeypatch.setattr(EmbeddingServer, "do_POST", trickle)
    monkeypatch.setattr(provider_embedders, "MAX_EMBEDDING_SECONDS", 0.5)

    started = time.monotonic()
    with pytest.raises(EmbedderFailed, match="did not answer"):
        find_embedder("openai/any").embed(["One"], "query")
    assert time.monotonic() - started < 30


@pytest.mark.postgres_only
@pytest.mark.django_db(transaction=True)
def test_a_request_holds_no_database_connection(server, monkeypatch):
    embedder = find_embedder("openai/any")
    wrapper, open_connections = connections["default"], []
    wrapper.ensure_connection()

    async def request(self, texts, kind):
        open_connections.append(wrapper.connection)
        return [[1.0] for _ in texts]

    monkeypatch.setattr(type(embedder), "request", request)
    embedder.embed(["One"], "query")

    assert open_connections == [None]


def test_a_private_address_is_not_reached(server, settings):
    settings.OUTBOUND_NETWORKS = []

    with pytest.raises(EmbedderFailed, match="private address"):
        find_embedder("openai/any").embed(["One"], "query")
    assert EmbeddingServer.requests == []


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("nobody/model", "The model provider 'nobody' is unknown. Add it under Model providers, or choose one of "),
        ("anthropic/claude", "The model provider 'anthropic' has no embedding models."),
        ("demo/echo", "The model provider 'demo' has no embedding models."),
        ("mistral/mistral-embed", "Mistral has no API key."),
    ],
)
def test_a_provider_that_cannot_embed_is_an_error_with_the_way_out(server, name, message):
    with pytest.raises(UnknownEmbedder) as error:
        find_embedder(name)

    assert str(error.value).startswith(message)


@pytest.mark.parametrize("name", ["nobody/model", "anthropic/claude"])
def test_an_error_names_the_embedder_that_needs_no_provider(db, name):
    with pytest.raises(UnknownEmbedder, match="or local/multilingual, which needs no provider"):
        find_embedder(name)
