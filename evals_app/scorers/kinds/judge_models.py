"""A model wrapper that counts the tokens of a judge.

Imports pydantic-ai, which is heavy. Import this module only where a judge is asked.
"""

from __future__ import annotations

from typing import Any

from pydantic_ai.messages import ModelResponse
from pydantic_ai.models import Model
from pydantic_ai.models.wrapper import WrapperModel
from pydantic_ai.usage import RequestUsage

from evals_app.scorers.spending import current_spending


class CountingModel(WrapperModel):
    """A model that counts what its requests used."""

    def __init__(self, wrapped: Model) -> None:
        super().__init__(wrapped)
        self.usage = RequestUsage()
        self.total_cost: float | None = None

    async def request(self, *arguments: Any, **options: Any) -> ModelResponse:
        response = await self.wrapped.request(*arguments, **options)
        self.usage = self.usage + response.usage
        price = price_of(response)
        if price is not None:
            self.total_cost = (self.total_cost or 0.0) + price
        if (spending := current_spending.get()) is not None:
            spending.add(response.usage.input_tokens, response.usage.output_tokens, price)
        return response

    @property
    def tokens(self) -> dict[str, int]:
        """The tokens used so far, under wire names."""
        given, made = self.usage.input_tokens, self.usage.output_tokens
        return {"inputTokens": given, "outputTokens": made, "totalTokens": given + made}


def price_of(response: ModelResponse) -> float | None:
    """Return the cost of a request in dollars, or None if the price of its model is not known."""
    try:
        return float(response.cost().total_price)
    except (LookupError, AssertionError, ValueError):  # ValueError: the provider counted no tokens
        return None
