"""Live, head and draft in Django admin."""

import pytest
from django.contrib.messages import get_messages
from django.urls import reverse

from agents_app.editing.change_context import change
from agents_app.models import Agent
from tests.agents_app.admin.test_admin_saving import admin_form
from tests.factories import AgentFactory, UserFactory, member

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def staff(client):
    user = UserFactory(is_staff=True, is_superuser=True, username="root")
    client.force_login(user)
    return user


@pytest.fixture
def agent():
    """Return an agent whose live and head are version 3 of 3."""
    agent = AgentFactory(description="1")
    for description in ("2", "3"):
        agent.edit({"description": description})
    return agent


@pytest.fixture
def drafted(agent):
    """Return an agent with live version 3 and draft version 4."""
    with change(publish=False):
        agent.edit({"description": "draft"})
    return agent


def pointers_of(agent):
    """Check the row against its head. Return the numbers of head, live and newest version."""
    row = Agent.objects.with_versions().get(pk=agent.pk)
    assert row.snapshot_text == row.head_version.snapshot_text
    return row.head_version.version_number, row.active_version.version_number, row.last_version_number


def save(client, agent, **changed):
    agent.refresh_from_db()
    return client.post(reverse("admin:agents_app_agent_change", args=[agent.pk]), admin_form(agent, **changed))


def pick(client, agent, number, action):
    """Choose an action for a version in the list and confirm it."""
    chosen = agent.versions.get(version_number=number).pk
    agent.refresh_from_db()
    sent = {
        "action": action,
        "_selected_action": [chosen],
        "confirmed": "yes",
        "live": agent.active_version_id,
        "head": agent.head_version_id,
    }
    return client.post(reverse("admin:versions_app_agentversion_changelist"), sent)


def address(agent, act):
    return reverse(f"admin:agents_app_agent_{act}", args=[agent.pk])


def messages(answer):
    return [str(message) for message in get_messages(answer.wsgi_request)]


def test_creating_publishes_version_1(client):
    client.post(reverse("admin:agents_app_agent_add"), {"id": "new", **admin_form(AgentFactory.build())})

    assert pointers_of(Agent.objects.get(pk="new")) == (1, 1, 1)


def test_a_save_without_a_draft_is_published(client, agent):
    save(client, agent, name="Porter")

    assert pointers_of(agent) == (4, 4, 4)


def test_a_save_without_publishing_creates_a_draft(client, agent):
    save(client, agent, name="Porter", publish=False)

    assert pointers_of(agent) == (4, 3, 4)


def test_a_save_on_a_draft_stays_a_draft(client, drafted):
    save(client, drafted, name="Porter", publish=False)

    assert pointers_of(drafted) == (5, 3, 5)


def test_a_publishing_save_publishes_the_draft_too(client, drafted):
    save(client, drafted, name="Porter")

    assert pointers_of(drafted) == (5, 5, 5)


def test_publishing_an_unchanged_draft_creates_no_version(client, drafted):
    save(client, drafted)

    assert pointers_of(drafted) == (4, 4, 4)


def test_activating_without_a_draft_moves_the_head(client, agent):
    pick(client, agent, 1, "publish")

    assert pointers_of(agent) == (1, 1, 3)


def test_activating_keeps_the_draft(client, drafted):
    pick(client, drafted, 1, "publish")

    assert pointers_of(drafted) == (4, 1, 4)


@pytest.mark.parametrize("standing", ["agent", "drafted"])
def test_restore_creates_a_new_live_version(client, request, standing):
    agent = request.getfixturevalue(standing)
    number = agent.last_version_number + 1

    pick(client, agent, 1, "restore")

    assert pointers_of(agent) == (number, number, number)
    assert agent.versions.get(version_number=number).snapshot["description"] == "1"


def test_a_manual_snapshot_equals_the_head_and_is_not_published(client, staff, drafted):
    sent = {"name": "Before the fair", "change_message": "For safety", "pinned": "on"}

    answer = client.post(address(drafted, "snapshot"), sent)

    made = drafted.versions.get(version_number=5)
    assert pointers_of(drafted) == (5, 3, 5)
    assert (made.name, made.change_message, made.pinned, made.author) == (*list(sent.values())[:2], True, staff)
    assert made.snapshot == drafted.versions.get(version_number=4).snapshot
    assert (answer.status_code, messages(answer)) == (302, ["v5 of Concierge was saved."])


def test_a_too_long_name_is_an_error_at_its_field(client, agent):
    answer = client.post(address(agent, "snapshot"), {"name": "x" * 101})

    assert "at most 100 characters" in answer.content.decode()
    assert pointers_of(agent) == (3, 3, 3)


def test_discarding_needs_a_confirmation_and_moves_the_head_to_live(client, drafted):
    confirmation = client.get(address(drafted, "discard_draft"))
    before = pointers_of(drafted)
    answer = client.post(address(drafted, "discard_draft"), {"head": drafted.head_version_id})

    assert (
        "Discards the draft v4 of Concierge. Editing starts from the live version v3 again."
        in confirmation.content.decode()
    )
    assert before == (4, 3, 4)
    assert pointers_of(drafted) == (3, 3, 4)
    assert messages(answer) == ["The draft v4 of Concierge was discarded."]


def test_a_draft_saved_after_the_confirmation_is_not_discarded(client, drafted):
    asked_about = drafted.head_version_id
    with change(publish=False):
        drafted.edit({"description": "newer"})

    answer = client.post(address(drafted, "discard_draft"), {"head": asked_about})

    assert pointers_of(drafted) == (5, 3, 5)
    assert "The live version or the draft changed" in messages(answer)[0]
    assert "Discards the draft v5 of Concierge" in answer.content.decode()


def test_discarding_without_a_draft_does_nothing(client, agent):
    answer = client.post(address(agent, "discard_draft"), {"head": agent.head_version_id})

    assert pointers_of(agent) == (3, 3, 3)
    assert messages(answer) == ["Concierge has no draft to discard."]


def test_the_agent_page_links_to_the_allowed_actions(client, agent, drafted):
    plain, ahead = AgentFactory(id="a_5Fb"), drafted

    for agent_with_page, discards in ((plain, False), (ahead, True)):
        page = client.get(reverse("admin:agents_app_agent_changelist")).content.decode()
        links = [reverse(f"admin:agents_app_agent_{act}", args=["a_5F5Fb"]) for act in ("snapshot", "duplicate")]
        assert all(link in page for link in links)
        assert (f"{agent_with_page.pk}/discard-draft/" in page) is discards
    assert client.get(links[0]).status_code == 200


@pytest.mark.parametrize(("role", "status"), [("viewer", 403), ("editor", 302), (None, 404)])
@pytest.mark.parametrize("act", ["snapshot", "discard_draft"])
def test_editors_are_allowed_and_viewers_are_not(client, drafted, act, role, status):
    user = member(role or "editor", "" if role else "elsewhere", is_staff=True)
    client.force_login(user)

    answer = client.post(address(drafted, act), {"name": "x", "head": drafted.head_version_id})

    assert answer.status_code == status
    assert (pointers_of(drafted) == (4, 3, 4)) is (status != 302)


def test_the_live_history_counts_its_entries(client, agent):
    listed = client.get(reverse("admin:versions_app_activation_changelist")).content.decode()

    assert "3 entries" in listed
    assert "3 live history" not in listed


def test_the_first_entry_names_no_earlier_version(agent):
    first, second = agent.activations.order_by("pk")[:2]

    assert str(first) == f"{agent.pk}: v1"
    assert str(second) == f"{agent.pk}: v1\u00a0→\u00a0v2"
