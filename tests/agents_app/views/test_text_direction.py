"""Texts of people, which may be written from right to left."""

import re

import pytest
from django.urls import reverse

from agents_app.editing.change_context import change
from tests.factories import AgentFactory
from tests.history_pages import edit, page

NAME = "\u05de\u05d5\u05e7\u05d3 \u05dc\u05d9\u05dc\u05d4"  # Hebrew
TEXT = "\u0631\u062d\u0628 \u0628\u0627\u0644\u0636\u064a\u0648\u0641."  # Arabic
REASON = "\u0633\u0628\u0628"


@pytest.fixture
def agent(db):
    """Return an agent whose texts are all written from right to left, with a dependent of the same name."""
    agent = AgentFactory(name=NAME, description=TEXT, instructions=TEXT)
    edit(agent, instructions=f"{TEXT}\n{TEXT}")
    version = agent.versions.get(version_number=2)
    version.update_description(name=NAME, change_message=REASON)
    with change(message=REASON):
        agent.versions.get(version_number=1).activate()
    AgentFactory(name=NAME, agents=[agent.pk])
    return agent


def texts_without_direction(html):
    """Return the elements that contain a text from right to left directly and do not find its direction."""
    html = re.sub(r"<(title|option|script)\b.*?</\1>", "", html, flags=re.DOTALL)
    tags = re.findall(rf"<([^<>]+)>[^<>]*(?:{NAME}|{TEXT}|{REASON})", html)
    return [tag for tag in tags if 'dir="auto"' not in tag]


PAGES = {
    "list": lambda agent: reverse("agents:list"),
    "editor": lambda agent: reverse("agents:edit", args=[agent.pk]),
    "history": lambda agent: reverse("versions:list", args=[agent.pk]),
    "recent": lambda agent: reverse("versions:recent", args=[agent.pk]),
    "live history": lambda agent: reverse("versions:live_history", args=[agent.pk]),
    "version": lambda agent: reverse("versions:view", args=[agent.pk, 2]),
    "compare": lambda agent: f"{reverse('versions:compare', args=[agent.pk])}?from=1&to=2",
    "unified": lambda agent: f"{reverse('versions:compare', args=[agent.pk])}?from=1&to=2&layout=unified",
    "used by": lambda agent: reverse("agents:used_by", args=[agent.pk]),
    "playground": lambda agent: reverse("runs:playground", args=[agent.pk]),
    "publish": lambda agent: reverse("versions:activate", args=[agent.pk, 2]),
    "restore": lambda agent: reverse("versions:restore", args=[agent.pk, 2]),
}


@pytest.mark.parametrize("name", PAGES)
def test_the_browser_finds_the_direction_of_each_text(publisher, agent, name):
    html = publisher.get(PAGES[name](agent)).content.decode()

    assert NAME in html
    assert texts_without_direction(html) == []


def test_a_viewer_reads_texts_in_their_direction(viewer, agent):
    assert texts_without_direction(viewer.get(PAGES["editor"](agent)).content.decode()) == []


def test_the_deleted_agent_has_its_direction(publisher, agent):
    AgentFactory(name=NAME).delete()

    assert texts_without_direction(publisher.get(reverse("agents:trash")).content.decode()) == []


def test_filters_of_a_history_accept_any_script(publisher, agent):
    assert page(publisher, "list", agent, author=NAME).status_code == 200
