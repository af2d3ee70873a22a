"""The fixtures of page tests of runs."""

import re
from typing import Any

import pytest
from django.test import Client

from agents_app.editing.change_context import change
from agents_app.models import Agent
from tests.factories import AgentFactory, member
from tests.page_client import browser, publisher, viewer

__all__ = ["agent", "ann", "editor", "publisher", "viewer"]


@pytest.fixture
def agent(db: None) -> Agent:
    """Return an agent with three versions: the second is live, the third a draft."""
    agent = AgentFactory()
    agent.edit({"instructions": "Greet guests warmly."})
    with change(publish=False):
        agent.edit({"instructions": "Greet guests by name."})
    return Agent.objects.with_versions().get(pk=agent.pk)


@pytest.fixture
def ann(db: None) -> Any:
    """Return an editor of the shared space."""
    return member("editor", username="ann")


@pytest.fixture
def editor(ann: Any) -> Client:
    return browser(ann)


def page_text(answer: Any) -> str:
    """Return the text of a page without tags."""
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", answer.content.decode()))
