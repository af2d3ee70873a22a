"""Embedders of Cohere, Voyage and Amazon Bedrock, against a server on this machine that answers as they document."""

import json
from http.server import BaseHTTPRequestHandler
from urllib.parse import unquote

import numpy as np
import pytest

from agentcms.vectors import EmbedderFailed, UnknownEmbedder, find_embedder
from knowledge_app.indexing.embedding import BATCH_SIZE
from memory_app.recall.indexing import TEXTS_PER_STEP
from runs_app.embedders import vendor_requests
from runs_app.embedders.provider_embedders import offered_embedders
from runs_app.exceptions import AgentBuildError
from runs_app.models import ModelProvider
from runs_app.providers import cached_providers
from runs_app.providers.models import build_model

pytestmark = pytest.mark.django_db

KEY = "vendor-key-0123456789"
MOST_TEXTS = 96  # of a request to Cohere; Voyage takes 1,000
MODELS = {
    "cohere": ["embed-v4.0"],
    "voyage": ["voyage-4"],
    "bedrock": [
        "amazon.titan-embed-text-v2:0",
        "amazon.nova-2-multimodal-embeddings-v1:0",
        "cohere.embed-multilingual-v3",
        "us.cohere.embed-v4:0",
    ],
}
NAMES = [f"{key}/{model}" for key, models in MODELS.items() for model in models]


def vector_of(text):
    return [float(len(text)), 1.0, 0.0]


def answer_cohere(body):
    assert {*body} == {"model", "texts", "input_type", "embedding_types"}
    assert len(body["texts"]) <= MOST_TEXTS
    vectors = {"float": [vector_of(text) for text in body["texts"]]}
    meta = {"api_version": {"version": "2"}, "billed_units": {"input_tokens": 2}}
    return {"id": "a", "texts": body["texts"], "embeddings": vectors, "meta": meta}


def answer_voyage(body):
    assert {*body} == {"model", "input", "input_type"}
    data = [{"object": "embedding", "embedding": vector_of(text), "index": n} for n, text in enumerate(body["input"])]
    return {"object": "list", "data": data, "model": body["model"], "usage": {"total_tokens": 10}}


def answer_bedrock(model, body):
    if "titan" in model:
        assert {*body} == {"inputText"}
        return {"embedding": vector_of(body["inputText"]), "inputTextTokenCount": 3}
    if "nova" in model:
        assert (body["taskType"], {*body}) == ("SINGLE_EMBEDDING", {"taskType", "singleEmbeddingParams"})
        text = body["singleEmbeddingParams"]["text"]
        assert text["truncationMode"] == "END"
        return {"embeddings": [{"embeddingType": "TEXT", "embedding": vector_of(text["value"])}]}
    assert {*body} == {"texts", "input_type", *(["truncate"] if "v3" in model else [])}
    vectors = [vector_of(text) for text in body["texts"]]
    return {"id": "a", "embeddings": vectors if "v3" in model else {"float": vectors}, "texts": body["texts"]}


class VendorServer(BaseHTTPRequestHandler):
    status, requests, change = 200, [], None

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.requests.append((self.path, body))
        status = self.status if self.headers["Authorization"] == f"Bearer {KEY}" else 401
        answer = self.answer(body) if status == 200 else {"message": f"wrong key {KEY}"}
        content = json.dumps(answer if type(self).change is None else type(self).change(answer)).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def answer(self, body):
        if self.path == "/v2/embed":
            return answer_cohere(body)
        if self.path == "/v1/embeddings":
            return answer_voyage(body)
        _, folder, model, act = self.path.split("/")
        assert (folder, act) == ("model", "invoke")
        return answer_bedrock(unquote(model), body)

    def log_message(self, *args):
        pass


@pytest.fixture
def server(serving_embedder):
    def configure(address):
        for key, folder in (("cohere", "/v2"), ("voyage", "/v1/"), ("bedrock", "")):
            store_provider(key, f"{address}{folder}")

    with serving_embedder(VendorServer, configure) as server:
        yield server


def store_provider(key, base_url="", secret=KEY, **fields):
    row = ModelProvider(key=key, title=key.title(), dialect=key, base_url=base_url, **fields)
    row.set_secret(secret)
    row.save()


def kind_of(body):
    """Return what a request says of its texts."""
    return body.get("input_type") or body.get("singleEmbeddingParams", {}).get("embeddingPurpose")


@pytest.mark.parametrize("name", NAMES)
def test_texts_are_embedded_in_their_order_and_by_their_kind(server, name):
    texts = ["One", "Twenty", "Three hundred"]

    rows = find_embedder(name).embed(texts, "document")
    find_embedder(name).embed(["Which?"], "query")

    expected = np.array([vector_of(text) for text in texts])
    np.testing.assert_allclose(rows, expected / np.linalg.norm(expected, axis=1, keepdims=True), atol=1e-6)
    kinds = [kind_of(body) for _, body in VendorServer.requests]
    query, document = kinds[-1], kinds[0]
    assert (query, document) in [
        ("search_query", "search_document"),
        ("query", "document"),
        ("TEXT_RETRIEVAL", "GENERIC_INDEX"),
        (None, None),  # the models of Titan have one kind
    ]
    assert (document is None) == ("titan" in name)
    assert len(kinds) == (4 if "titan" in name or "nova" in name else 2)


@pytest.mark.parametrize("name", ["cohere/embed-v4.0", "voyage/voyage-4", NAMES[2]])
@pytest.mark.parametrize("status", [302, 401, 429, 500])
def test_an_error_of_a_vendor_names_its_status_and_no_key(server, monkeypatch, caplog, name, status):
    monkeypatch.setattr(VendorServer, "status", status)

    with pytest.raises(EmbedderFailed, match=f"^The embedder {name} answered with status {status}.$") as error:
        find_embedder(name).embed(["One"], "query")

    assert KEY not in str(error.value) + caplog.text
    assert error.value.is_rate_limited == (status == 429)


def shortened(answer):
    """Return an answer with a vector less."""
    if "data" in answer:
        return {**answer, "data": answer["data"][1:]}
    return {**answer, "embeddings": {"float": answer["embeddings"]["float"][1:]}}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (shortened, "returned no vector for a text"),
        (lambda answer: {}, "sent an answer that cannot be read"),
        (lambda answer: [], "sent an answer that cannot be read"),
    ],
)
@pytest.mark.parametrize("name", ["cohere/embed-v4.0", "voyage/voyage-4"])
def test_an_answer_without_a_vector_for_each_text_is_a_failure(server, monkeypatch, name, change, message):
    monkeypatch.setattr(VendorServer, "change", change)

    with pytest.raises(EmbedderFailed, match=message):
        find_embedder(name).embed(["One", "Two"], "query")


def test_a_vendor_at_a_private_address_is_not_reached(server, settings):
    settings.OUTBOUND_NETWORKS = []

    with pytest.raises(EmbedderFailed, match="private address"):
        find_embedder("cohere/embed-v4.0").embed(["One"], "query")
    assert VendorServer.requests == []


def test_long_texts_are_sent_to_voyage_in_several_requests(server, monkeypatch):
    monkeypatch.setattr(vendor_requests, "VOYAGE_CHARACTERS", 10)

    rows = find_embedder("voyage/voyage-4").embed(["a" * 6, "b" * 4, "c" * 20, "d"], "document")

    assert [[len(text) for text in body["input"]] for _, body in VendorServer.requests] == [[6, 4], [20], [1]]
    assert len(rows) == 4


def test_no_batch_has_more_texts_than_a_vendor_takes():
    assert max(BATCH_SIZE, TEXTS_PER_STEP) <= MOST_TEXTS


def test_without_a_base_url_each_vendor_has_its_own(db):
    for key in MODELS:
        store_provider(key)
    cached_providers.invalidate()
    table = cached_providers.get_table()

    assert [table.find(key).base_url for key in MODELS] == [
        "https://api.cohere.com/v2",
        "https://api.voyageai.com/v1",
        "",
    ]
    # That of Amazon Bedrock is one of a region.
    with pytest.raises(UnknownEmbedder, match=r"Bedrock has no base URL. Enter one under Model providers."):
        find_embedder(NAMES[2])


def test_a_model_of_bedrock_with_an_unknown_request_is_refused(server):
    with pytest.raises(UnknownEmbedder, match=r"Choose amazon.titan-embed-text-v2:0, "):
        find_embedder("bedrock/amazon.nova-lite-v1:0")


def test_a_provider_of_embedders_answers_no_agent(server):
    message = "Voyage only has embedding models. Choose another provider."

    with pytest.raises(AgentBuildError, match=message):
        build_model({"provider": "voyage", "name": "voyage-4"})
    assert cached_providers.model_unavailable_reason("voyage") == message


def test_the_embedding_models_of_available_providers_are_offered(server, settings):
    settings.MODEL_KEYS = {"openai": KEY, "mistral": "", "google": ""}
    store_provider("own", "https://models.example.org/v1", names=["llama", "nomic-embed-text"])
    ModelProvider.objects.filter(key="own").update(dialect="openai-compatible")
    ModelProvider.objects.filter(key="voyage").update(names=["voyage-law-2"])
    cached_providers.invalidate()

    names = [name for name, _ in offered_embedders()]

    assert {"openai/text-embedding-3-small", "own/nomic-embed-text", "voyage/voyage-law-2"} <= {*names}
    assert ("cohere/embed-v4.0", "Cohere") in [*offered_embedders()]
    assert not {"own/llama", "voyage/voyage-4", "mistral/mistral-embed"} & {*names}
    for name in names:
        find_embedder(name)
