"""The number of tokens that models read at once, from the data of genai-prices."""

from __future__ import annotations

from functools import lru_cache


@lru_cache(maxsize=1000)
def find_context_window(provider: str, model: str) -> int | None:
    """Return how many tokens a model reads at once, or None if that is unknown."""
    from genai_prices import data_snapshot  # heavy: the data of all models

    try:
        _, info = data_snapshot.get_snapshot().find_provider_model(model, None, provider, None)
    except LookupError:
        return None
    return info.context_window
