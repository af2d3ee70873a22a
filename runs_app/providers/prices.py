"""Prices of models, from the data of genai-prices."""

from __future__ import annotations

from contextlib import suppress
from decimal import Decimal
from functools import lru_cache
from typing import Any

from agentcms.wire.json_types import JSONMapping, JSONObject
from runs_app.models.provider import ModelProvider
from runs_app.providers.cached_providers import CODE_DIALECT, DEMO_DIALECT, get_table


def has_known_price(choice: JSONMapping) -> bool:
    """Return whether the runs of a model will have a cost, as far as that is known before. The demo model is free."""
    provider = get_table().find(str(choice.get("provider")))
    if provider is None or provider.dialect == DEMO_DIALECT:
        return True
    if provider.dialect == CODE_DIALECT:
        return is_priced_in_code(provider.target, provider.key, str(choice.get("name")))
    # The names that pydantic-ai gives the providers of the models of `runs_app.providers.models`.
    name = provider.key if provider.dialect == ModelProvider.Dialect.COMPATIBLE else provider.dialect
    return is_priced(str(choice.get("name")), provider.base_url, name)


@lru_cache(maxsize=1000)
def is_priced_in_code(target: Any, provider: str, name: str) -> bool:
    """Return whether a model that code builds has a price. A model of several others has one if they all have."""
    try:
        model = target(name, {"provider": provider, "name": name})
    except Exception:  # whatever the code raises; no run can use the model
        return True
    models = getattr(model, "models", None) or [model]
    # Also by the name alone: only the answers of the model name its provider.
    return all(
        is_priced(one.model_name, one.base_url or "", one.system) or has_price(one.model_name) for one in models
    )


@lru_cache(maxsize=1000)
def is_priced(model: str, url: str, provider: str) -> bool:
    """Return whether a model has a price, by the URL or the name of its provider, as pydantic-ai looks for it."""
    return has_price(model, url=url) or has_price(model, provider=provider)


def has_price(model: str, url: str | None = None, provider: str | None = None) -> bool:
    """Return whether a model has a price, at a provider if its URL or its name is given."""
    from genai_prices import Usage, calc_price  # heavy: the prices of all models

    usage = Usage(input_tokens=1)
    with suppress(LookupError, ValueError):
        if url is None:
            calc_price(usage, model, provider_id=provider)
        else:
            calc_price(usage, model, provider_api_url=url)
        return True
    return False


def list_price(model: str, usage: JSONObject) -> Decimal | None:
    """Return the list price of a request in dollars, or None for an unknown model."""
    from genai_prices import Usage, calc_price  # heavy: the prices of all models

    tokens = Usage(
        input_tokens=usage.get("inputTokens"),
        output_tokens=usage.get("outputTokens"),
        cache_read_tokens=usage.get("cachedInputTokens"),
    )
    try:
        return calc_price(tokens, model).total_price
    except (LookupError, ValueError):
        return None
