"""Fixtures and functions of tests of runs."""

import asyncio
from uuid import uuid4

import pytest
from cachetools import TTLCache
from pydantic_ai.models.function import FunctionModel

from agentcms.cache import SizeLimitedCache
from agents_app.registry import Entry, Kind, registry
from runs_app.engine.context import RunDeps
from runs_app.providers import cached_providers
from tests.factories import AgentFactory


@pytest.fixture(autouse=True)
def cleared_provider_cache(monkeypatch):
    """Clear the cache of stored providers, and let it not expire during a test."""
    monkeypatch.setattr(cached_providers.provider_table, "_cache", SizeLimitedCache(TTLCache(1, 60)))
    cached_providers.invalidate()
    yield
    cached_providers.invalidate()


@pytest.fixture
def ask():
    """Return a function that runs a built agent without a stored run and returns its output."""
    return lambda built, text, **options: asyncio.run(answer(built, text, **options)).output


@pytest.fixture
def run():
    """Return a function that runs a built agent without a stored run and returns the whole result."""
    return lambda built, text, **options: asyncio.run(answer(built, text, **options))


async def answer(built, text, history=(), settings=None, **options):
    deps = running(**{"options": built.options, **options})
    events = built.agent.run_stream_events(text, deps=deps, message_history=[*history], model_settings=settings)
    async with events as happening:
        return [event async for event in happening][-1].result


def running(**options) -> RunDeps:
    """Return the dependencies of a run that is not stored."""
    usual = {
        "run_id": uuid4(),
        "agent_key": "concierge",
        "owner_id": "",
        "user_id": None,
        "call_sub_agent": ask_sub_agent,
    }
    return RunDeps(**{**usual, **options})


async def ask_sub_agent(key, prompt, call_id):
    return f"{key} was asked: {prompt}"


@pytest.fixture
def agent_with_model():
    """Return a function that returns an agent whose model yields the texts of another function."""

    def agent(words):
        model = FunctionModel(stream_function=words)
        registry.add(Entry(Kind.MODEL_PROVIDER, "chatter", "Chatter", target=lambda name, choice: model))
        return AgentFactory(model={"provider": "chatter", "name": "on"}, tools=["word-count"])

    return agent
