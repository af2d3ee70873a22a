"""From `{"provider", "name"}` to a model that answers.

It imports pydantic-ai, which is heavy: import this module where an agent is built, never at start-up.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache, lru_cache
from typing import Any, Literal

import httpx2
from django.conf import settings
from pydantic import TypeAdapter, ValidationError
from pydantic_ai.models import Model, create_async_httpx2_client

from agentcms.wire.names import to_python, to_wire
from runs_app.exceptions import AgentBuildError
from runs_app.models import ModelProvider
from runs_app.providers import demo_model
from runs_app.providers.address_policy import check_url
from runs_app.providers.table import CODE, DEMO, Provider, table
from runs_app.providers.transport import CheckedTransport
from runs_app.requests.options import model_settings, read_defaults

Dialect = ModelProvider.Dialect

CONNECT_TIMEOUT = 10  # seconds
NO_KEY = "none"  # a server of one's own may ask for no key; the clients want some text all the same
NOT_SETTINGS = {"provider", "name", "delay", "maxOutputTokens", "modelSettings"}
# Beside the options of a call; how long a request may take and which headers it has is not for an editor to say.
ALLOWED: Mapping[str, TypeAdapter[Any]] = {
    "thinking": TypeAdapter(bool | Literal["minimal", "low", "medium", "high", "xhigh", "max"]),
    "parallel_tool_calls": TypeAdapter(bool),
    "service_tier": TypeAdapter(Literal["auto", "default", "flex", "priority"]),
    "logit_bias": TypeAdapter(dict[str, int]),
    "citations": TypeAdapter(bool),
    "extra_body": TypeAdapter(dict[str, Any]),
}
OF_PROVIDERS = ("openai_", "anthropic_", "google_")
# What a provider remembers of others is not for an editor to bring up.
FORBIDDEN = {"openai_previous_response_id", "openai_conversation_id", "openai_conversation"}


def model_for(choice: Mapping[str, Any]) -> Model:
    """The model that an agent chose. Raises CannotBuild where nobody offers it or it cannot be used."""
    provider = provider_of(choice)
    name = str(choice["name"])
    if provider.dialect == DEMO:
        return demo(name, choice)
    if provider.dialect == CODE:
        model: Model = provider.target(name, choice)
        return model
    check_url(provider.base_url)
    return MODEL_FACTORIES[provider.dialect](provider, name)


def settings_of(choice: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """What stands beside provider and name as settings of the model, and the names of what is none.

    They are written as in the options of a call, or as pydantic-ai names them, with a provider's own among them:
    `topP`, `thinking`, `openai_reasoning_effort`.
    """
    options, issues = read_defaults(choice)
    found = model_settings(options)
    faulty = {issue.field.partition(".")[0].partition("[")[0] for issue in issues}
    unknown = [*faulty]
    for name, value in choice.items():
        setting = to_python(name)
        if name in NOT_SETTINGS or name in faulty or to_wire(name) in options:
            continue
        if is_setting(setting, value):
            found[setting] = value
        else:
            unknown.append(name)
    return found, unknown


def is_setting(name: str, value: Any) -> bool:
    """Whether an editor may say this to a model."""
    if name not in ALLOWED:
        return name.startswith(OF_PROVIDERS) and name not in FORBIDDEN
    try:
        ALLOWED[name].validate_python(value, strict=True)
    except ValidationError:
        return False
    return name != "extra_body" or not FORBIDDEN & {f"openai_{inner}" for inner in value}


def provider_of(choice: Mapping[str, Any]) -> Provider:
    """The provider of a choice, ready to be asked."""
    named, name = choice.get("provider"), choice.get("name")
    if not named or not name:
        raise AgentBuildError("The model needs a provider and a name. Choose both.", "model_missing")
    providers = table()
    provider = providers.find(str(named))
    if provider is None:
        known = ", ".join(sorted(providers.providers))
        raise AgentBuildError(f"No model provider is known as '{named}'. Choose one of {known}.", "provider_unknown")
    if not provider.is_available:
        message = f"The model provider '{named}' cannot be used. {provider.reason}"
        raise AgentBuildError(message, "provider_unavailable")
    return provider


def demo(name: str, choice: Mapping[str, Any]) -> Model:
    if name not in demo_model.NAMES:
        known = " and ".join(demo_model.NAMES)
        raise AgentBuildError(f"The demo provider has no model '{name}'. It has {known}.", "model_unknown")
    return demo_model.demo_model(name, choice)


def openai(provider: Provider, name: str) -> Model:
    from pydantic_ai.models.openai import OpenAIResponsesModel

    return OpenAIResponsesModel(name, provider=openai_client(provider.base_url, provider.secret))


def compatible(provider: Provider, name: str) -> Model:
    """A server that speaks OpenAI's older dialect, which everybody else speaks too."""
    from pydantic_ai.models.openai import OpenAIChatModel

    access = compatible_client(provider.key, provider.base_url, provider.secret)
    return OpenAIChatModel(name, provider=access)


def anthropic(provider: Provider, name: str) -> Model:
    from pydantic_ai.models.anthropic import AnthropicModel

    return AnthropicModel(name, provider=anthropic_client(provider.base_url, provider.secret))


def google(provider: Provider, name: str) -> Model:
    from pydantic_ai.models.google import GoogleModel

    return GoogleModel(name, provider=google_client(provider.base_url, provider.secret))


MODEL_FACTORIES: Mapping[str, Callable[[Provider, str], Model]] = {
    Dialect.OPENAI: openai,
    Dialect.COMPATIBLE: compatible,
    Dialect.ANTHROPIC: anthropic,
    Dialect.GOOGLE: google,
}

# Some that speak like OpenAI never say why they stop; what code registers may not either.
SAY_WHY = {Dialect.OPENAI, Dialect.ANTHROPIC, Dialect.GOOGLE}

# Clients are kept: to make one costs up to 200 ms.


@lru_cache(maxsize=64)
def openai_client(base_url: str, secret: str) -> Any:
    from pydantic_ai.providers.openai import OpenAIProvider

    return OpenAIProvider(base_url=base_url, api_key=secret or NO_KEY, http_client=http_client())


@lru_cache(maxsize=64)
def compatible_client(key: str, base_url: str, secret: str) -> Any:
    from pydantic_ai.profiles.openai import OpenAIModelProfile
    from pydantic_ai.providers.openai_compatible import OpenAICompatibleProvider

    # What OpenAI added later is refused by servers that are strict about what they do not know.
    older = OpenAIModelProfile(
        openai_chat_supports_max_completion_tokens=False, openai_supports_strict_tool_definition=False
    )
    return OpenAICompatibleProvider(
        key, base_url=base_url, api_key=secret or NO_KEY, http_client=http_client(), profile=older
    )


@lru_cache(maxsize=64)
def anthropic_client(base_url: str, secret: str) -> Any:
    from pydantic_ai.providers.anthropic import AnthropicProvider

    return AnthropicProvider(base_url=base_url, api_key=secret or NO_KEY, http_client=http_client())


@lru_cache(maxsize=64)
def google_client(base_url: str, secret: str) -> Any:
    from pydantic_ai.providers.google import GoogleProvider

    return GoogleProvider(base_url=base_url, api_key=secret or NO_KEY, http_client=http_client())


@cache
def http_client() -> httpx2.AsyncClient:
    """One client for all models of this process; it follows no redirect to where nobody looked."""
    timeout = httpx2.Timeout(settings.RUN_TIMEOUT, connect=CONNECT_TIMEOUT)
    return create_async_httpx2_client(timeout=timeout, transport=CheckedTransport())
