"""Models of pydantic-ai for the model choice of an agent, `{"provider", "name"}`.

Imports pydantic-ai, which is heavy. Import this module only where an agent is built.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache, lru_cache
from typing import TYPE_CHECKING, TypeVar

import httpx2
from django.conf import settings
from pydantic_ai.models import Model, create_async_httpx2_client

from agentcms.outbound.addresses import validate_url
from agentcms.outbound.transport import CheckedTransport
from agentcms.tracing.propagation import add_trace_context
from agentcms.wire.json_types import JSONMapping
from runs_app.exceptions import AgentBuildError
from runs_app.models import ModelProvider
from runs_app.providers import demo_model
from runs_app.providers.cached_providers import CODE_DIALECT, DEMO_DIALECT, Provider, get_table
from runs_app.providers.response_limit import limit_response
from runs_app.providers.schema_cache import cache_schemas

if TYPE_CHECKING:
    from pydantic_ai.providers.openai_compatible import OpenAICompatibleProvider

Dialect = ModelProvider.Dialect
ClientType = TypeVar("ClientType")

CONNECT_TIMEOUT = 10  # seconds
PLACEHOLDER_KEY = "none"  # the clients require a key, although self-hosted servers may not


def build_model(choice: JSONMapping) -> Model:
    """Build the model that an agent names. Raise AgentBuildError if it is unknown or not available."""
    provider = get_model_provider(choice)
    name = str(choice["name"])
    if provider.dialect == DEMO_DIALECT:
        return build_demo_model(name, choice)
    if provider.dialect == CODE_DIALECT:
        model: Model = provider.target(name, choice)
        return model
    validate_url(provider.base_url)
    return MODEL_FACTORIES[provider.dialect](provider, name)


def get_model_provider(choice: JSONMapping) -> Provider:
    """Return the provider of a model choice. Raise AgentBuildError if it is unknown or not available."""
    key, name = choice.get("provider"), choice.get("name")
    if not key or not name:
        raise AgentBuildError("The model needs a provider and a name. Choose both.", "model_missing")
    table = get_table()
    provider = table.find(str(key))
    if provider is None:
        keys = ", ".join(sorted(table.providers))
        raise AgentBuildError(f"Unknown model provider '{key}'. Choose one of {keys}.", "provider_unknown")
    if reason := provider.no_answer_reason:
        raise AgentBuildError(reason, "provider_unavailable")
    return provider


def build_demo_model(name: str, choice: JSONMapping) -> Model:
    if name not in demo_model.DEMO_MODEL_NAMES:
        names = " or ".join(demo_model.DEMO_MODEL_NAMES)
        raise AgentBuildError(f"The demo provider has no model '{name}'. Choose {names}.", "model_unknown")
    return demo_model.demo_model(name, choice)


def build_openai_model(provider: Provider, name: str) -> Model:
    from pydantic_ai.models.openai import OpenAIResponsesModel
    from pydantic_ai.providers.openai import OpenAIProvider

    client = cached_client(OpenAIProvider, provider.base_url, provider.secret)
    return OpenAIResponsesModel(name, provider=client, profile=cache_schemas)


def build_compatible_model(provider: Provider, name: str) -> Model:
    """Return a model that uses the Chat Completions API of OpenAI, which many servers implement."""
    from runs_app.providers.compatible_model import CompatibleModel

    client = compatible_client(provider.key, provider.base_url, provider.secret)
    return CompatibleModel(name, provider=client, profile=cache_schemas)


def build_anthropic_model(provider: Provider, name: str) -> Model:
    from pydantic_ai.models.anthropic import AnthropicModel
    from pydantic_ai.providers.anthropic import AnthropicProvider

    client = cached_client(AnthropicProvider, provider.base_url, provider.secret)
    return AnthropicModel(name, provider=client, profile=cache_schemas)


def build_google_model(provider: Provider, name: str) -> Model:
    from pydantic_ai.models.google import GoogleModel
    from pydantic_ai.providers.google import GoogleProvider

    client = cached_client(GoogleProvider, provider.base_url, provider.secret)
    return GoogleModel(name, provider=client, profile=cache_schemas)


MODEL_FACTORIES: Mapping[str, Callable[[Provider, str], Model]] = {
    Dialect.OPENAI: build_openai_model,
    Dialect.COMPATIBLE: build_compatible_model,
    Dialect.ANTHROPIC: build_anthropic_model,
    Dialect.GOOGLE: build_google_model,
}

# Some OpenAI-compatible servers and registered models send no finish reason.
DIALECTS_WITH_FINISH_REASON = {Dialect.OPENAI, Dialect.ANTHROPIC, Dialect.GOOGLE}

# The clients are cached because creating one takes up to 200 ms.


@lru_cache(maxsize=64)
def cached_client(client_class: Callable[..., ClientType], base_url: str, secret: str) -> ClientType:
    return client_class(base_url=base_url, api_key=secret or PLACEHOLDER_KEY, http_client=http_client())


@lru_cache(maxsize=64)
def compatible_client(key: str, base_url: str, secret: str) -> OpenAICompatibleProvider:
    from pydantic_ai.profiles.openai import OpenAIModelProfile
    from pydantic_ai.providers.openai_compatible import OpenAICompatibleProvider

    # Strict servers reject parameters that OpenAI added later.
    profile = OpenAIModelProfile(
        openai_chat_supports_max_completion_tokens=False, openai_supports_strict_tool_definition=False
    )
    return OpenAICompatibleProvider(
        key, base_url=base_url, api_key=secret or PLACEHOLDER_KEY, http_client=http_client(), profile=profile
    )


@cache
def http_client() -> httpx2.AsyncClient:
    """Return the HTTP client of all models.

    It follows no redirects, and with its own transport it uses no proxy of the environment: nobody has checked these
    addresses.
    """
    timeout = httpx2.Timeout(settings.RUN_TIMEOUT, connect=CONNECT_TIMEOUT)
    client = create_async_httpx2_client(timeout=timeout, transport=CheckedTransport(limit_response))
    client.event_hooks["request"].append(add_trace_context)
    return client
