"""The models of judges, whose tokens and cost are counted.

Imports pydantic-ai, which is heavy. Import this module only where a judge is asked.
"""

from __future__ import annotations

from typing import Any

from pydantic_ai.messages import ModelResponse
from pydantic_ai.models.wrapper import WrapperModel

from agentcms.wire.json_types import JSONObject
from evals_app.scorers.results import ScorerError
from evals_app.scorers.spending import current_spending
from runs_app.exceptions import AgentBuildError
from runs_app.providers.models import build_model


class CountingModel(WrapperModel):
    """A model that adds the tokens and the cost of each request to the spending of the current scorer."""

    async def request(self, *arguments: Any, **options: Any) -> ModelResponse:
        response = await self.wrapped.request(*arguments, **options)
        usage = response.usage
        current_spending.get().add(usage.input_tokens, usage.output_tokens, price_of(response))
        return response


def build_judge_model(config: JSONObject) -> CountingModel:
    """Return the model of a judge. Raise ScorerError if it is not available."""
    try:
        return CountingModel(build_model(config.get("model") or {}))
    except AgentBuildError as error:
        raise ScorerError(" ".join(error.messages)) from None


def price_of(response: ModelResponse) -> float | None:
    """Return the cost of a request in dollars, or None if the price of its model is not known."""
    try:
        return float(response.cost().total_price)
    # AssertionError: the response names no model. ValueError: the provider counted no tokens.
    except (LookupError, AssertionError, ValueError):
        return None
