"""The tokens and the cost of the requests of a scorer to models, also if it fails after them."""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import dataclass, field

TOKENS = ("inputTokens", "outputTokens", "totalTokens")


@dataclass
class Spending:
    """The tokens and the cost of the requests of one scorer so far."""

    tokens: dict[str, int] = field(default_factory=dict)  # by wire name
    cost: float | None = None  # in dollars; None if no price is known

    def add(self, input_tokens: int, output_tokens: int, price: float | None) -> None:
        """Count a request. `price` is None if the price of its model is not known."""
        for name, count in zip(TOKENS, (input_tokens, output_tokens, input_tokens + output_tokens), strict=True):
            self.tokens[name] = self.tokens.get(name, 0) + count
        if price is not None:
            self.cost = (self.cost or 0.0) + price


# `score_by_snapshot` sets it for each score. Scorers that run at the same time have contexts of their own.
current_spending: ContextVar[Spending] = ContextVar("current_spending")
