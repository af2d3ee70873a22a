"""Archiving on the pages."""

import re

import pytest
from django.urls import reverse

from access_app.role import Role
from agents_app.editing.archiving import archive_locked
from agents_app.editing.change_context import change
from agents_app.models import Agent
from tests.factories import AgentFactory, member
from tests.page_client import browser, editor_form

pytestmark = pytest.mark.django_db


@pytest.fixture
def archived(agent):
    with change(actor=member(Role.PUBLISHER, username="penny")):
        archive_locked(agent)
    return agent


def listed(client, query=""):
    return [row.agent.pk for row in client.get(f"/{query}").context["listing"].rows]


def test_an_archived_agent_is_listed_only_by_its_filter(publisher, archived):
    other = AgentFactory()

    assert listed(publisher) == [other.pk]
    assert listed(publisher, "?q=concierge") == [other.pk]
    assert listed(publisher, "?status=archived") == [archived.pk]


def test_an_agent_is_archived_and_unarchived(publisher, agent):
    address = reverse("agents:archive", args=[agent.pk])

    assert "Archive Concierge?" in publisher.get(address).content.decode()
    publisher.post(address)
    assert listed(publisher) == []
    publisher.post(reverse("agents:unarchive", args=[agent.pk]))
    assert listed(publisher) == [agent.pk]


def test_an_agent_in_use_is_archived_only_after_a_confirmation(publisher, agent):
    AgentFactory(name="Front desk", agents=[agent.pk])
    address = reverse("agents:archive", args=[agent.pk])

    refused = publisher.post(address)
    assert (refused.status_code, "Front desk" in refused.content.decode()) == (422, True)
    assert publisher.post(address, {"confirmed": "on"}).status_code == 302
    assert Agent.objects.archived().get() == agent


def test_editors_can_neither_archive_nor_unarchive(editor, agent):
    for name in ("archive", "unarchive"):
        assert editor.post(reverse(f"agents:{name}", args=[agent.pk])).status_code == 403
    assert "needs the Publisher role" in editor.get(reverse("agents:archive", args=[agent.pk])).content.decode()


def test_the_page_of_an_archived_agent_says_so_and_cannot_be_edited(publisher, archived):
    html = publisher.get(reverse("agents:edit", args=[archived.pk])).content.decode()

    # As all other dates on pages: the day comes first.
    assert f"This agent was archived on {archived.archived_at:%-d %B %Y}" in html
    assert "by penny. Unarchive it to edit, publish or run it." in html
    assert "Save draft" not in html
    assert reverse("agents:unarchive", args=[archived.pk]) in html


def test_saving_an_archived_agent_says_so(publisher, agent):
    form = editor_form(agent, name="New")
    archive_locked(agent)

    answer = publisher.post(reverse("agents:edit", args=[agent.pk]), form)

    assert answer.status_code == 409
    assert f"Agent {agent.pk} is archived. Unarchive it first." in answer.content.decode()
    assert Agent.objects.get().name == "Concierge"


def test_htmx_loads_the_page_again_after_a_refused_save(publisher, agent):
    form = editor_form(agent, name="New")
    archive_locked(agent)

    answer = publisher.post(reverse("agents:edit", args=[agent.pk]), form, headers={"HX-Request": "true"})

    assert answer.headers["HX-Refresh"] == "true"
    page = publisher.get(reverse("agents:edit", args=[agent.pk])).content.decode()
    assert f"Agent {agent.pk} is archived. Unarchive it first." in page


@pytest.mark.parametrize("role", ["viewer", "publisher"])
def test_pages_of_an_agent_say_that_its_sub_agent_is_archived(client, archived, role):
    agent = AgentFactory(id="host", agents=[archived.pk, "gone"])
    client.force_login(member(role))

    page = client.get(reverse("agents:edit", args=[agent.pk])).content.decode()

    texts = " ".join(re.sub(r"<[^>]+>", " ", page).split())
    assert f"{archived.pk} archived" in texts
    assert "gone not registered" in texts


@pytest.mark.parametrize("name", ["activate", "restore", "delete", "describe"])
def test_the_dialogs_of_a_history_say_so(publisher, archived, name):
    html = publisher.get(reverse(f"versions:{name}", args=[archived.pk, 1])).content.decode()

    assert "Unarchive it to edit, publish or run it." in html


def test_a_version_of_an_archived_agent_is_not_described(publisher, archived):
    answer = publisher.post(reverse("versions:describe", args=[archived.pk, 1]), {"name": "New", "pinned": "on"})

    assert answer.status_code == 409
    assert archived.versions.filter(name="", pinned=False).exists()


def test_the_playground_says_so(publisher, archived):
    html = publisher.get(reverse("runs:playground", args=[archived.pk])).content.decode()

    assert f"Agent {archived.pk} is archived. Unarchive it first." in html


def test_pickers_leave_out_archived_agents(editor, archived):
    other = AgentFactory(id="desk")

    form = editor.get(reverse("agents:edit", args=[other.pk])).context["form"]

    assert archived.pk not in [option.key for option in form.options("agents").search().options]


def test_several_agents_are_archived_and_unarchived(publisher, agent):
    used = AgentFactory(id="used")
    AgentFactory(id="desk", agents=["used"])
    sent = {"act": "archive", "agent": [agent.pk, used.pk]}

    assert "Archive 2 agents?" in publisher.post(reverse("agents:selected"), sent).content.decode()
    answer = publisher.post(reverse("agents:selected"), {**sent, "sure": "yes"})
    assert [result.sentence for result in answer.context["results"]] == [
        "Archived.",
        "Left out: it is a sub-agent of 'desk'.",
    ]

    publisher.post(reverse("agents:selected"), {"act": "unarchive", "agent": [agent.pk]})
    assert not Agent.objects.archived().exists()


def test_an_archived_agent_of_another_owner_is_not_found():
    agent = AgentFactory(owner_id="newsroom")
    stranger = browser(member(Role.MANAGER, "elsewhere"))

    for name in ("archive", "unarchive"):
        assert stranger.post(reverse(f"agents:{name}", args=[agent.pk])).status_code == 404
