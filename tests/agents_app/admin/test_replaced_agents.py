"""A page of the admin that was opened for an agent does nothing to another one that has its ID since."""

import pytest
from django.urls import reverse

from access_app.role import Role
from agents_app.editing.change_context import change
from agents_app.models import Agent
from tests.factories import AgentFactory, member
from tests.form_submission import form_data

pytestmark = pytest.mark.django_db

PAGES = [
    ("change", {"name": "Porter"}),
    ("delete", {"typed": "Concierge"}),
    ("archive", {}),
    ("snapshot", {"name": "Second"}),
    ("duplicate", {"id": "copy"}),
    ("discard_draft", {}),
]


def with_draft():
    agent = AgentFactory(id="concierge", name="Concierge")
    with change(publish=False):
        agent.edit({"instructions": "Second."})
    return agent


def open_form_of_replaced(client, page, entered):
    """Open a page for an agent, and replace the agent. Return the URL, what is sent, and the new agent."""
    client.force_login(member(Role.PUBLISHER, is_staff=True))
    agent = with_draft()
    url = reverse(f"admin:agents_app_agent_{page}", args=[agent.pk])
    form = form_data(client.get(url).content.decode()).dict() | entered
    agent.delete()
    return url, form, with_draft()


def state(agent):
    row = Agent.objects.get(pk=agent.pk)
    return row.row_key, row.revision, row.name, row.archived_at, row.versions.count(), Agent.objects.count()


@pytest.mark.parametrize(("page", "entered"), PAGES)
def test_the_page_of_another_agent_changes_nothing(client, page, entered):
    url, form, other = open_form_of_replaced(client, page, entered)
    before = state(other)

    refused = client.post(url, form)

    assert (refused.status_code in (200, 409), state(other)) == (True, before)


@pytest.mark.parametrize(
    ("page", "entered"), [("delete", {"typed": "Not its name"}), ("snapshot", {"name": "a" * 500})]
)
def test_the_page_of_another_agent_is_refused_although_its_form_is_invalid(client, page, entered):
    url, form, _ = open_form_of_replaced(client, page, entered)

    assert client.post(url, form).status_code == 409


@pytest.mark.parametrize("action", ["archive_agents", "delete_agents"])
def test_the_question_about_selected_agents_is_not_about_another_one(client, action):
    client.force_login(member(Role.PUBLISHER, is_staff=True))
    agent, url = with_draft(), reverse("admin:agents_app_agent_changelist")
    sent = {"action": action, "_selected_action": [agent.pk]}
    form = form_data(client.post(url, sent).content.decode()).dict()
    agent.delete()
    other = with_draft()
    before = state(other)

    client.post(url, form | {"confirmed": "yes", "typed": "delete 1 agent"})

    assert (form["action"], state(other)) == (action, before)
