"""What the tests of runs share."""

import asyncio
from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import pytest

from agents_app.registry import Kind, registry
from runs_app import providers
from runs_app.context import Running
from runs_app.engine import running_engine
from runs_app.models import AgentRun
from tests.served import wait_until


@pytest.fixture
def engine_at_rest(transactional_db: None) -> Iterator[None]:
    """A database that the engine's threads see too, and that they have left when the next test empties it."""
    yield
    engine = running_engine()
    if engine is not None:
        for run_id in list(engine.tasks):
            engine.cancel(run_id)
        wait_until(lambda: not engine.tasks and not engine.writer.held, what="the end of every run")


def ended(run: AgentRun, seconds: float = 20) -> AgentRun:
    """The run once it is over."""

    def is_over() -> Any:
        run.refresh_from_db()
        return run.is_over

    wait_until(is_over, seconds, f"the end of run {run.pk}")
    return run


@pytest.fixture(autouse=True)
def providers_as_they_are():
    """No test believes what another one read of the providers."""
    providers.forget()
    yield
    providers.forget()


@pytest.fixture
def registered():
    """Registers an entry for one test."""
    added = []

    def add(entry):
        added.append(registry.add(entry))
        return entry

    yield add
    for entry in added:
        registry.remove(entry.kind, entry.key)


@pytest.fixture
def unregistered():
    """Removes an entry for one test."""
    taken = []

    def remove(kind: Kind, key: str):
        taken.append(registry.get(kind, key))
        registry.remove(kind, key)

    yield remove
    for entry in taken:
        registry.add(entry)


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


def running(**said) -> Running:
    """What an agent knows of a run that is nowhere kept."""
    return Running(uuid4(), "concierge", "", None, **{"ask_sub_agent": asked, **said})


async def asked(key, prompt, call_id):
    return f"{key} was asked: {prompt}"
