"""Embedders of model providers, with their keys and the check of every address."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from agentcms.db.connections import return_connection
from agentcms.outbound.addresses import AddressRefused, validate_url
from agentcms.vectors.embedders import EmbedderFailed, InputKind, UnknownEmbedder
from agents_app.configuration.memory.options import DEFAULT_EMBEDDER
from runs_app.embedders.vendor_requests import BEDROCK_MODELS, is_bedrock_embedder, request_vectors
from runs_app.models.provider import ModelProvider
from runs_app.providers.cached_providers import EMBEDDING_ONLY_DIALECTS, Provider, get_table

if TYPE_CHECKING:
    from pydantic_ai.embeddings import EmbeddingModel

    from agentcms.vectors.embedders import Rows

log = logging.getLogger(__name__)

EMBEDDING_TIMEOUT_SECONDS = 20  # seconds of a request; a run waits for less
TOO_MANY_REQUESTS = 429
MAX_EMBEDDING_SECONDS = 60.0  # with the requests that the client repeats
UNREADABLE_ERRORS = (LookupError, TypeError, AttributeError, ValueError)  # of reading an answer of another form
EMBEDDING_DIALECTS = {
    ModelProvider.Dialect.OPENAI,
    ModelProvider.Dialect.COMPATIBLE,
    ModelProvider.Dialect.GOOGLE,
    *EMBEDDING_ONLY_DIALECTS,
}
# By dialect, or by provider where it is one of many with its dialect. Forms offer them; any other name can be entered.
EMBEDDING_MODELS: Mapping[str, tuple[str, ...]] = {
    ModelProvider.Dialect.OPENAI: ("text-embedding-3-small", "text-embedding-3-large"),
    ModelProvider.Dialect.GOOGLE: ("gemini-embedding-001",),
    "mistral": ("mistral-embed",),
    ModelProvider.Dialect.COHERE: ("embed-v4.0", "embed-multilingual-v3.0"),
    ModelProvider.Dialect.VOYAGE: ("voyage-4", "voyage-4-large", "voyage-4-lite"),
    ModelProvider.Dialect.BEDROCK: BEDROCK_MODELS,
}


@dataclass(frozen=True)
class ProviderEmbedder:
    """An embedding model of a provider. Texts are sent to it."""

    name: str  # provider/model
    provider: Provider
    dimensions: int = 0

    @property
    def model(self) -> str:
        return self.name.partition("/")[2]

    def load(self) -> None:
        """Do nothing: the model is loaded at the provider."""

    def embed(self, texts: Sequence[str], kind: InputKind) -> Rows:
        """Return one row of length 1 for each text. Raise EmbedderFailed if the provider returns an error."""
        import numpy as np

        if not texts:
            return np.empty((0, self.dimensions), np.float32)
        return_connection()
        try:
            embeddings = asyncio.run(self.request(texts, kind))
        except Exception as error:  # each client has its own errors
            # The error itself may quote the key or the texts.
            log.warning("The embedder %s failed: %s", self.name, type(error).__name__)
            is_rate_limited = answer_status(error) == TOO_MANY_REQUESTS
            raise EmbedderFailed(failure_sentence(self.name, error), is_rate_limited=is_rate_limited) from None
        try:
            rows: Rows = np.asarray(embeddings, np.float32)
        except (TypeError, ValueError):  # texts for numbers, or vectors of several lengths
            rows = np.empty(0, np.float32)
        # Some servers answer null for a number that they could not compute. It becomes NaN, which no JSON can have.
        if rows.ndim != 2 or len(rows) != len(texts) or not rows.size or not np.isfinite(rows).all():
            raise EmbedderFailed(f"The embedder {self.name} returned no vector for a text.")
        lengths = np.linalg.norm(rows, axis=1, keepdims=True)
        rows /= np.where(lengths > 0, lengths, 1)
        return rows

    async def request(self, texts: Sequence[str], kind: InputKind) -> Sequence[Sequence[float]]:
        """Return what the provider answers. The client of the runs belongs to another event loop."""
        from httpx2 import Timeout
        from pydantic_ai.models import create_async_httpx2_client

        from agentcms.outbound.transport import CheckedTransport
        from runs_app.providers.response_limit import limit_response

        validate_url(self.provider.base_url)
        transport = CheckedTransport(limit_response)
        client = create_async_httpx2_client(timeout=Timeout(EMBEDDING_TIMEOUT_SECONDS), transport=transport)
        # The limit of the client is one for each part of an answer, which a server could send without an end.
        async with asyncio.timeout(MAX_EMBEDDING_SECONDS), client:
            if self.provider.has_only_embedders:
                return await request_vectors(client, self.provider, self.model, texts, kind)
            return await self.request_with_client_library(client, texts, kind)

    async def request_with_client_library(
        self, client: Any, texts: Sequence[str], kind: InputKind
    ) -> Sequence[Sequence[float]]:
        from pydantic_ai import Embedder

        result = await Embedder(build_embedding_model(self, client)).embed([*texts], input_type=kind)
        return result.embeddings


def build_embedding_model(embedder: ProviderEmbedder, client: Any) -> EmbeddingModel:
    """Return the model of pydantic-ai for an embedder."""
    from runs_app.providers.models import PLACEHOLDER_KEY

    provider = embedder.provider
    secret = provider.secret or PLACEHOLDER_KEY
    if provider.dialect == ModelProvider.Dialect.GOOGLE:
        from pydantic_ai.embeddings.google import GoogleEmbeddingModel
        from pydantic_ai.providers.google import GoogleProvider

        google = GoogleProvider(base_url=provider.base_url, api_key=secret, http_client=client)
        return GoogleEmbeddingModel(embedder.model, provider=google)
    from pydantic_ai.embeddings.openai import OpenAIEmbeddingModel
    from pydantic_ai.providers.openai import OpenAIProvider

    openai = OpenAIProvider(base_url=provider.base_url, api_key=secret, http_client=client)
    return OpenAIEmbeddingModel(embedder.model, provider=openai)


def answer_status(error: Exception) -> int | None:
    """Return the status of the answer that an error is about, or None if there was no answer."""
    return getattr(error, "status_code", None)


def failure_sentence(name: str, error: Exception) -> str:
    """Return what went wrong, without texts of the provider."""
    if isinstance(error, AddressRefused):
        return str(error.message)
    if status := answer_status(error):
        return f"The embedder {name} answered with status {status}."
    if isinstance(error, UNREADABLE_ERRORS):
        return f"The embedder {name} sent an answer that cannot be read. Check the base URL of its provider."
    return f"The embedder {name} did not answer."


def find_provider_embedder(name: str) -> ProviderEmbedder:
    """Return the embedder `provider/model`. Raise UnknownEmbedder if the provider cannot embed texts."""
    key, _, _ = name.partition("/")
    provider = get_table().find(key)
    if provider is None or provider.dialect not in EMBEDDING_DIALECTS:
        able = sorted(item.key for item in get_table() if item.dialect in EMBEDDING_DIALECTS)
        reason = (
            "has no embedding models. Choose" if provider else "is unknown. Add it under Model providers, or choose"
        )
        choices = f"one of {', '.join(able)}, or {DEFAULT_EMBEDDER}, which needs no provider."
        raise UnknownEmbedder(f"The model provider '{key}' {reason} {choices}")
    if not provider.is_available:
        raise UnknownEmbedder(provider.reason)
    embedder = ProviderEmbedder(name, provider)
    if provider.dialect == ModelProvider.Dialect.BEDROCK and not is_bedrock_embedder(embedder.model):
        choices = ", ".join(BEDROCK_MODELS)
        raise UnknownEmbedder(f"'{embedder.model}' is no known embedding model of Amazon Bedrock. Choose {choices}.")
    return embedder


def offered_embedders() -> Iterator[tuple[str, str]]:
    """Yield the names of embedding models with the title of their provider, of those providers that are available."""
    for provider in get_table():
        if provider.is_available and provider.dialect in EMBEDDING_DIALECTS:
            for model in embedding_models(provider):
                yield f"{provider.key}/{model}", provider.title


def embedding_models(provider: Provider) -> Sequence[str]:
    """Return the embedding models that staff entered for a provider, or the known ones."""
    named = [name for name in provider.names if provider.has_only_embedders or "embed" in name.lower()]
    key = provider.key if provider.dialect == ModelProvider.Dialect.COMPATIBLE else provider.dialect
    return named or EMBEDDING_MODELS.get(key, ())
