"""Actions in the admin on agents that others move to another team or delete after the rights were checked."""

import pytest
from django.urls import reverse

from access_app.role import Role
from agents_app.editing.change_context import change
from agents_app.models import Agent, AgentQuerySet
from tests.agents_app.admin.test_admin_saving import admin_form
from tests.factories import AgentFactory, archived_agent, member

pytestmark = pytest.mark.django_db


@pytest.fixture
def staff(client):
    client.force_login(member(Role.PUBLISHER, "support", is_staff=True))
    return client


@pytest.fixture
def moving(monkeypatch):
    """Let another team get each agent just before it is locked."""
    get_locked = AgentQuerySet.get_locked

    def move_and_lock(agents, agent_id):
        Agent.objects.filter(pk=agent_id).update(owner_id="legal")
        return get_locked(agents, agent_id)

    def start():
        monkeypatch.setattr(AgentQuerySet, "get_locked", move_and_lock)

    return start


def state(agent):
    row = Agent.objects.get(pk=agent.pk)
    return row.revision, row.last_version_number, row.head_version_id, row.archived_at


@pytest.mark.parametrize("action", ["archive", "unarchive", "snapshot", "discard_draft", "delete"])
def test_an_agent_of_another_team_is_not_changed(staff, moving, action):
    agent = archived_agent("porter", "support") if action == "unarchive" else AgentFactory(owner_id="support")
    if action == "discard_draft":
        with change(publish=False):
            agent.edit({"name": "Porter"})
    before = state(agent)
    moving()

    data = {"typed": agent.name, "head": str(before[2]), "name": "Porter", "change_message": ""}
    answer = staff.post(reverse(f"admin:agents_app_agent_{action}", args=[agent.pk]), data)

    assert answer.status_code == 404
    assert state(agent) == before


def test_the_text_for_an_agent_that_was_deleted_stays_in_the_form(staff, monkeypatch):
    agent = AgentFactory(owner_id="support")
    get_locked = AgentQuerySet.get_locked

    def delete_and_lock(agents, agent_id):
        Agent.objects.filter(pk=agent_id).delete()
        return get_locked(agents, agent_id)

    monkeypatch.setattr(AgentQuerySet, "get_locked", delete_and_lock)

    page = staff.post(
        reverse("admin:agents_app_agent_change", args=[agent.pk]), admin_form(agent, instructions="Greet guests.")
    ).content.decode()

    assert "This agent was deleted since you opened it." in page
    assert "Greet guests." in page
