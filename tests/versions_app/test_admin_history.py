"""The history in Django admin: to read, to name and pin, to activate and restore."""

import pytest
from django.urls import reverse

from agents_app.changes import change
from tests.factories import AgentFactory, UserFactory, member

pytestmark = pytest.mark.django_db


@pytest.fixture
def staff(client):
    user = UserFactory(is_staff=True, is_superuser=True)
    client.force_login(user)
    return user


@pytest.fixture
def agent():
    agent = AgentFactory()
    agent.edit({"name": "Porter"})
    return agent


def act(client, version, action):
    return client.post(
        reverse("admin:versions_app_agentversion_changelist"), {"action": action, "_selected_action": [version.pk]}
    )


def test_a_version_is_named_and_pinned_but_not_changed(client, staff, agent):
    version = agent.versions.get(version_number=1)
    address = reverse("admin:versions_app_agentversion_change", args=[version.pk])

    client.post(
        address, {"name": "First", "pinned": "on", "change_message": "Why", "version_number": 9, "snapshot": "{}"}
    )

    changed = agent.versions.get(version_number=1)
    assert (changed.name, changed.pinned, changed.snapshot_text) == ("First", True, version.snapshot_text)


def test_an_old_version_goes_live_from_the_list(client, staff, agent):
    act(client, agent.versions.get(version_number=1), "make_live")

    agent.refresh_from_db()
    assert (agent.active_version.version_number, agent.activations.first().author) == (1, staff)


def test_an_old_version_is_restored_from_the_list(client, staff, agent):
    act(client, agent.versions.get(version_number=1), "restore")

    agent.refresh_from_db()
    assert (agent.active_version.version_number, agent.active_version.source) == (3, "restore")


def test_an_editor_moves_nothing_that_is_live(client, agent):
    client.force_login(member("editor", is_staff=True))

    act(client, agent.versions.get(version_number=1), "make_live")

    agent.refresh_from_db()
    assert agent.active_version.version_number == 2


def test_nobody_deletes_or_adds_a_version(client, staff, agent):
    version = agent.versions.get(version_number=1)

    deletion = client.post(reverse("admin:versions_app_agentversion_delete", args=[version.pk]), {"post": "yes"})
    addition = client.get(reverse("admin:versions_app_agentversion_add"))

    assert (deletion.status_code, addition.status_code) == (403, 403)


def test_staff_see_the_history_of_their_own_agents_alone(client, agent):
    client.force_login(member("publisher", "north", is_staff=True))
    with change(message="Unseen"):
        agent.edit({"name": "Hidden"})

    versions = client.get(reverse("admin:versions_app_agentversion_changelist")).content.decode()
    activations = client.get(reverse("admin:versions_app_activation_changelist")).content.decode()

    assert "Unseen" not in versions
    assert agent.pk not in activations


def test_markup_in_a_snapshot_stays_text(client, staff):
    agent = AgentFactory(instructions="<script>alert(1)</script>")
    address = reverse("admin:versions_app_agentversion_change", args=[agent.active_version_id])

    assert "<script>alert" not in client.get(address).content.decode()
