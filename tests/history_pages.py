"""Fixtures and functions of tests of history pages."""

from typing import Any, NamedTuple

import pytest
from django.contrib.messages import get_messages
from django.test import Client
from django.urls import reverse

from agents_app.editing.change_context import change
from agents_app.models import Agent
from versions_app.models import AgentVersion


class AgentState(NamedTuple):
    """The numbers of live, head and all versions of an agent."""

    live: int
    head: int
    versions: list[int]


def agent_state(agent: Agent) -> AgentState:
    agent = Agent.objects.with_versions().get(pk=agent.pk)
    pointers: Any = (agent.active_version, agent.head_version)
    live, head = (version.version_number for version in pointers)
    assert agent.snapshot_text == pointers[1].snapshot_text, "the row is the picture of its head"
    return AgentState(live, head, sorted(agent.versions.values_list("version_number", flat=True)))


def edit(agent: Agent, publish: bool | None = None, **fields: Any) -> AgentVersion:
    """Save the agent, as a draft where `publish` is False. Return the version."""
    with change(publish=publish):
        version: Any = Agent.objects.get(pk=agent.pk).edit(fields)
    return version


def version(agent: Agent, number: int) -> AgentVersion:
    return agent.versions.get(version_number=number)


def page(client: Client, name: str, agent: Agent, /, *more: Any, **query: Any) -> Any:
    return client.get(reverse(f"versions:{name}", args=[agent.pk, *more]), query)


def act(client: Client, name: str, agent: Agent, /, *more: Any, **sent: Any) -> Any:
    """Send the form of an action, opened just now and changed by `sent`."""
    now = agent_state(agent)
    address = reverse(f"versions:{name}", args=[agent.pk, *more])
    return client.post(address, {"live": now.live, "head": now.head, **sent})


def messages(response: Any) -> list[str]:
    """Return the messages for the next page."""
    return [str(message) for message in get_messages(response.wsgi_request)]


@pytest.fixture
def story(agent: Agent) -> Agent:
    """Return an agent with three versions, the third of them live."""
    edit(agent, instructions="Greet guests warmly.\nAnswer briefly.")
    edit(agent, tools=["search"])
    return agent


@pytest.fixture
def drafted(story: Agent) -> Agent:
    """Return the story with a fourth version, which is a draft."""
    edit(story, publish=False, name="Doorman")
    return story
