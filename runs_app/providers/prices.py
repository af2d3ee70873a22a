"""Prices of models, from the data of genai-prices."""

from __future__ import annotations

from contextlib import suppress
from decimal import Decimal
from functools import lru_cache

from agentcms.wire.json_types import JSONMapping, JSONObject
from runs_app.models.provider import ModelProvider
from runs_app.providers.table import CODE_DIALECT, DEMO_DIALECT, get_table


def has_known_price(choice: JSONMapping) -> bool:
    """Return whether the runs of a model will have a cost, as far as that is known before.

    The demo model costs nothing, and only the answers of a model in code say whose it is.
    """
    provider = get_table().find(str(choice.get("provider")))
    if provider is None or provider.dialect in (DEMO_DIALECT, CODE_DIALECT):
        return True
    # The names that pydantic-ai gives the providers of the models of `runs_app.providers.models`.
    name = provider.key if provider.dialect == ModelProvider.Dialect.COMPATIBLE else provider.dialect
    return is_priced(str(choice.get("name")), provider.base_url, name)


@lru_cache(maxsize=1000)
def is_priced(model: str, url: str, provider: str) -> bool:
    """Return whether a model has a price, by the URL or the name of its provider, as pydantic-ai looks for it."""
    from genai_prices import Usage, calc_price  # heavy: the prices of all models

    with suppress(LookupError, ValueError):
        calc_price(Usage(input_tokens=1), model, provider_api_url=url)
        return True
    with suppress(LookupError, ValueError):
        calc_price(Usage(input_tokens=1), model, provider_id=provider)
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
