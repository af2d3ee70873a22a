"""The tokens and the cost of the requests of a scorer to models, also if it fails after them."""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import dataclass, field

TOKENS = ("inputTokens", "outputTokens", "totalTokens")


@dataclass
class Spending:
    """The tokens and the cost of the requests of one scorer so far."""

    tokens: dict[str, int] = field(default_factory=dict)  # by wire name
    cost: float | None = None

    def add(self, given: int, made: int, price: float | None) -> None:
        """Count a request. `price` is None if the price of its model is not known."""
        for name, count in zip(TOKENS, (given, made, given + made), strict=True):
            self.tokens[name] = self.tokens.get(name, 0) + count
        if price is not None:
            self.cost = (self.cost or 0.0) + price


current_spending: ContextVar[Spending | None] = ContextVar("current_spending", default=None)
