"""Requests to a model outside of a run: titles, observations and reflections."""

from __future__ import annotations

import asyncio
from typing import NamedTuple

from agentcms.wire.json_types import JSONMapping, JSONObject
from runs_app.engine.thread_pools import run_db
from runs_app.events.stream_chunks import to_storable_json
from runs_app.providers.cached_providers import DEMO_DIALECT


class ModelAnswer(NamedTuple):
    """The text of a model, and the tokens that it took under wire names."""

    text: str
    usage: JSONObject


async def request_answer(choice: JSONMapping, instructions: str, prompt: str, seconds: float) -> ModelAnswer:
    """Return the answer of a model without tools. Raise TimeoutError, and the errors of pydantic-ai."""
    from pydantic_ai import Agent  # loads slowly

    from runs_app.events.recorder import usage_payload
    from runs_app.providers.models import build_model

    model = await run_db(build_model, choice)  # may query the providers
    agent = Agent(model, instructions=instructions)
    async with asyncio.timeout(seconds):
        result = await agent.run(prompt)
    return ModelAnswer(str(to_storable_json(result.output)), usage_payload(result.usage))


def is_demo_model(choice: JSONMapping) -> bool:
    """Return whether a model is the demo model, which echoes its input."""
    from runs_app.providers.models import get_model_provider

    return get_model_provider(choice).dialect == DEMO_DIALECT
