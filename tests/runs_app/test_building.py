"""From a configuration to an agent that answers."""

import asyncio
from uuid import uuid4

import pytest

from runs_app.context import Running
from runs_app.resolution import stored_agents
from tests.factories import AgentFactory

pytestmark = pytest.mark.django_db


async def no_sub_agent(key, prompt, call_id):
    return f"{key} was asked: {prompt}"


def ask(built, text, **said):
    running = Running(uuid4(), "concierge", "", None, no_sub_agent, **said)

    async def answer():
        async with built.agent.run_stream_events(text, deps=running) as events:
            return [event async for event in events][-1].result.output

    return asyncio.run(answer())


def test_a_stored_agent_answers():
    AgentFactory(id="concierge")

    built = stored_agents.get("concierge").build()

    assert ask(built, "Hello there") == "I am the demo model 'echo'. You said: Hello there"
    assert built.model_name == "demo/echo"
    assert built.is_demo


def test_a_tool_is_called_when_the_message_names_it():
    AgentFactory(id="concierge", tools=["word-count"])

    answer = ask(stored_agents.get("concierge").build(), "Use word-count on this")

    assert answer == "I am the demo model. word-count says 4."
