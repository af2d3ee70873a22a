"""Requests for embeddings to vendors whose own clients would open connections past the check of addresses.

Each vendor has one request in JSON. The kind of a text, a query or a document, is part of it, because their models
embed a question and its answer differently.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any
from urllib.parse import quote

from agentcms.vectors.embedders import InputKind
from agentcms.wire.json_types import JSONObject
from runs_app.models.provider import ModelProvider
from runs_app.providers.cached_providers import Provider

Vectors = Sequence[Sequence[float]]
Send = Callable[[str, JSONObject], Awaitable[Any]]  # a path below the base URL and a body, for the answer
VendorEmbedder = Callable[[Send, str, Sequence[str], InputKind], Awaitable[Vectors]]

OK = 200
# Of one request to the models with the lowest limit, 120,000 tokens. A token has at least one character, as a rule.
VOYAGE_CHARACTERS = 100_000
BEDROCK_REQUESTS = 5  # at once, to models that embed one text per request
BEDROCK_MODELS = ("amazon.titan-embed-text-v2:0", "amazon.nova-2-multimodal-embeddings-v1:0", "cohere.embed-v4:0")


class VendorError(Exception):
    """An answer with another status than 200."""

    def __init__(self, status_code: int) -> None:
        super().__init__(f"status {status_code}")
        self.status_code = status_code


async def request_vectors(
    client: Any, provider: Provider, model: str, texts: Sequence[str], kind: InputKind
) -> Vectors:
    """Return the vectors of a vendor. Raise VendorError."""
    embed = VENDOR_EMBEDDERS[provider.dialect]
    return await embed(partial(post_json, client, provider), model, texts, kind)


async def post_json(client: Any, provider: Provider, path: str, body: JSONObject) -> Any:
    """Return the answer of a provider. Raise VendorError."""
    headers = {"Authorization": f"Bearer {provider.secret}"} if provider.secret else {}
    response = await client.post(f"{provider.base_url.rstrip('/')}/{path}", json=body, headers=headers)
    if response.status_code != OK:
        raise VendorError(response.status_code)
    return response.json()


async def embed_with_cohere(send: Send, model: str, texts: Sequence[str], kind: InputKind) -> Vectors:
    # The address of Cohere for clients of OpenAI takes no input type.
    body = {"model": model, "texts": [*texts], "input_type": f"search_{kind}", "embedding_types": ["float"]}
    answer = await send("embed", body)
    vectors: Vectors = answer["embeddings"]["float"]
    return vectors


async def embed_with_voyage(send: Send, model: str, texts: Sequence[str], kind: InputKind) -> Vectors:
    vectors: list[Sequence[float]] = []
    for batch in batches_by_length(texts, VOYAGE_CHARACTERS):
        answer = await send("embeddings", {"model": model, "input": batch, "input_type": kind})
        vectors += [row["embedding"] for row in answer["data"]]
    return vectors


def batches_by_length(texts: Sequence[str], characters: int) -> Iterator[list[str]]:
    """Yield texts in lists that together have at most so many characters, or a single text that has more."""
    batch: list[str] = []
    length = 0
    for text in texts:
        if batch and length + len(text) > characters:
            yield batch
            batch, length = [], 0
        batch.append(text)
        length += len(text)
    yield batch


async def embed_with_bedrock(send: Send, model: str, texts: Sequence[str], kind: InputKind) -> Vectors:
    """Return the vectors of a model of Amazon Bedrock. Those of Cohere take several texts, the others one."""
    path = f"model/{quote(model, safe='')}/invoke"
    if "cohere.embed" in model:
        # The third version refuses a text of more than 512 tokens otherwise.
        cut: JSONObject = {"truncate": "END"} if "-v3" in model else {}
        answer = await send(path, {"texts": [*texts], "input_type": f"search_{kind}", **cut})
        embeddings: Any = answer["embeddings"]
        vectors: Vectors = embeddings["float"] if isinstance(embeddings, dict) else embeddings
        return vectors
    slots = asyncio.Semaphore(BEDROCK_REQUESTS)

    async def embed_one(text: str) -> Sequence[float]:
        async with slots:
            if "titan-embed" in model:
                vector: Sequence[float] = (await send(path, {"inputText": text}))["embedding"]
            else:
                vector = (await send(path, nova_body(text, kind)))["embeddings"][0]["embedding"]
            return vector

    return await asyncio.gather(*map(embed_one, texts))


def nova_body(text: str, kind: InputKind) -> JSONObject:
    purpose = "TEXT_RETRIEVAL" if kind == "query" else "GENERIC_INDEX"
    parameters = {"embeddingPurpose": purpose, "text": {"truncationMode": "END", "value": text}}
    return {"taskType": "SINGLE_EMBEDDING", "singleEmbeddingParams": parameters}


def is_bedrock_embedder(model: str) -> bool:
    """Return whether the request of a model of Amazon Bedrock is known."""
    return any(name in model for name in ("cohere.embed", "titan-embed-text", "multimodal-embeddings"))


VENDOR_EMBEDDERS: Mapping[str, VendorEmbedder] = {
    ModelProvider.Dialect.COHERE: embed_with_cohere,
    ModelProvider.Dialect.VOYAGE: embed_with_voyage,
    ModelProvider.Dialect.BEDROCK: embed_with_bedrock,
}
