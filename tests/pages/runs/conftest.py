"""Runs as their pages meet them."""

import re
from typing import Any

import pytest
from django.test import Client

from agents_app.editing.change_context import change
from agents_app.models import Agent
from runs_app.providers import table
from tests.factories import AgentFactory, member
from tests.pages.conftest import browser


@pytest.fixture(autouse=True)
def providers_as_they_are() -> Any:
    """No test believes what another one read of the providers."""
    table.forget()
    yield
    table.forget()


@pytest.fixture
def agent(db: None) -> Agent:
    """An agent with three versions: the second is live, the third a draft."""
    agent = AgentFactory()
    agent.edit({"instructions": "Greet guests warmly."})
    with change(publish=False):
        agent.edit({"instructions": "Greet guests by name."})
    return Agent.objects.with_versions().get(pk=agent.pk)


@pytest.fixture
def ann(db: None) -> Any:
    """An editor of the shared space."""
    return member("editor", username="ann")


@pytest.fixture
def editor(ann: Any) -> Client:
    return browser(ann)


def words(answer: Any) -> str:
    """What a page says, without its marks."""
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", answer.content.decode()))
