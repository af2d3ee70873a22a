"""Actions in the admin on versions of agents that others move to another team after the rights were checked."""

import re

import pytest
from django.contrib.messages import get_messages

from access_app.role import Role
from agents_app.models import Agent, AgentQuerySet
from tests.factories import AgentFactory, member
from tests.versions_app.admin.test_versions import act, change_url
from versions_app.admin.version_actions import PIN_HINT, VERSION_GONE_MESSAGE
from versions_app.models import AgentVersion

pytestmark = pytest.mark.django_db


@pytest.fixture
def agent(client, monkeypatch):
    """Return an agent that another team gets just before it is locked."""
    client.force_login(member(Role.PUBLISHER, "support", is_staff=True))
    agent = AgentFactory(owner_id="support")
    agent.edit({"name": "Porter"})
    get_locked = AgentQuerySet.get_locked

    def move_and_lock(agents, agent_id):
        Agent.objects.filter(pk=agent_id).update(owner_id="legal")
        return get_locked(agents, agent_id)

    monkeypatch.setattr(AgentQuerySet, "get_locked", move_and_lock)
    return agent


def is_unchanged(agent):
    row = Agent.objects.get(pk=agent.pk)
    described = agent.versions.exclude(name="") | agent.versions.filter(pinned=True)
    return (row.active_version.version_number, row.last_version_number, described.exists()) == (2, 2, False)


@pytest.mark.parametrize("action", ["publish", "restore", "pin"])
def test_no_action_changes_a_version_of_another_team(client, agent, action):
    answer = act(client, agent.versions.get(version_number=1), action)

    texts = [str(message) for message in get_messages(answer.wsgi_request)]
    assert texts == [f"0 of 1 version pinned. {PIN_HINT}" if action == "pin" else VERSION_GONE_MESSAGE]
    assert is_unchanged(agent)


def test_no_form_changes_a_version_of_another_team(client, agent):
    answer = client.post(change_url(agent.versions.get(version_number=1)), {"name": "First", "pinned": "on"})

    assert answer.status_code == 302
    assert "Perhaps it was deleted?" in next(str(message) for message in get_messages(answer.wsgi_request))
    assert is_unchanged(agent)


def test_a_form_does_not_undo_what_another_editor_stores_while_it_waits(client, monkeypatch):
    client.force_login(member(Role.PUBLISHER, "support", is_staff=True))
    version = AgentFactory(owner_id="support").active_version
    state = re.search(r'name="opened_state" value="(\w+)"', client.get(change_url(version)).content.decode())[1]
    get_locked = AgentQuerySet.get_locked

    def describe_and_lock(agents, agent_id):
        row = get_locked(agents, agent_id)
        AgentVersion.objects.filter(pk=version.pk).update(name="Theirs")
        return row

    monkeypatch.setattr(AgentQuerySet, "get_locked", describe_and_lock)
    answer = client.post(change_url(version), {"name": "Mine", "change_message": "", "opened_state": state})

    assert "This version was changed since you opened it." in answer.content.decode()
    assert AgentVersion.objects.get(pk=version.pk).name == "Theirs"
