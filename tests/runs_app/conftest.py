"""What the tests of runs share."""

import asyncio
from uuid import uuid4

import pytest
from cachetools import TTLCache

from agentcms.cache import SizeLimitedCache
from runs_app.engine.context import RunDeps
from runs_app.providers import table


@pytest.fixture(autouse=True)
def providers_as_they_are(monkeypatch):
    """No test believes what another one read of the providers, and each believes for as long as it takes."""
    monkeypatch.setattr(table, "_tables", SizeLimitedCache(TTLCache(1, 60)))
    table.invalidate()
    yield
    table.invalidate()


@pytest.fixture
def ask():
    """Asks an agent that was built, in a run that is nowhere kept; returns what it answers."""
    return lambda built, text, **said: asyncio.run(answer(built, text, **said)).output


@pytest.fixture
def run():
    """The same; returns all that came of it."""
    return lambda built, text, **said: asyncio.run(answer(built, text, **said))


async def answer(built, text, history=(), settings=None, **said):
    deps = running(**{"options": built.options, **said})
    events = built.agent.run_stream_events(text, deps=deps, message_history=[*history], model_settings=settings)
    async with events as happening:
        return [event async for event in happening][-1].result


def running(**said) -> RunDeps:
    """What an agent knows of a run that is nowhere kept."""
    usual = {"run_id": uuid4(), "agent_key": "concierge", "owner_id": "", "user_id": None, "call_sub_agent": asked}
    return RunDeps(**{**usual, **said})


async def asked(key, prompt, call_id):
    return f"{key} was asked: {prompt}"
