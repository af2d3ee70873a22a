"""Duplicating an agent from a version."""

import re

import pytest
from django.urls import reverse

from access_app.role import Role
from agents_app.models import Agent
from tests.factories import AgentFactory, MembershipFactory, UserFactory, member
from tests.history_pages import agent_state, page
from tests.page_client import browser

pytestmark = pytest.mark.django_db


def send(client, agent, number, **typed):
    fields = {"id": "copy", "name": "A copy", "owner_id": "", **typed}
    return client.post(reverse("versions:duplicate", args=[agent.pk, number]), fields)


def test_a_duplicate_begins_with_the_version_and_has_its_own_history(editor, story):
    response = send(editor, story, 1)

    copy = Agent.objects.get(pk="copy")
    assert response.headers["Location"] == reverse("agents:edit", args=["copy"])
    assert copy.instructions == "Greet guests.\nAnswer briefly."
    assert copy.name == "A copy"
    assert copy.versions.get().change_message == f"Duplicated from {story.pk} version 1"
    assert agent_state(story) == (3, 3, [1, 2, 3])


@pytest.mark.parametrize(
    "typed", [{"id": "a/b"}, {"id": ".."}, {"id": " "}, {"id": ""}, {"name": " "}, {"owner_id": "elsewhere"}]
)
def test_an_invalid_id_is_an_error_at_its_field(editor, story, typed):
    response = send(editor, story, 1, **typed)

    assert response.status_code == 422
    assert Agent.objects.count() == 1


def test_a_taken_id_is_refused_without_naming_the_owner(editor, story):
    AgentFactory(id="copy", owner_id="elsewhere", name="Secret")

    response = send(editor, story, 1)

    assert response.status_code == 422
    assert "The ID copy is already taken." in response.content.decode()
    assert "Secret" not in response.content.decode()


def test_a_duplicate_needs_the_role_for_its_owner():
    agent = AgentFactory(owner_id="newsroom")
    user = member(Role.VIEWER, "newsroom")
    MembershipFactory(user=user, owner_id="lab", role=Role.EDITOR)
    client = browser(user)

    html = page(client, "duplicate", agent, 1).content.decode()
    refused = send(client, agent, 1, owner_id="newsroom")
    made = send(client, agent, 1, owner_id="lab")

    assert '<option value="lab"' in html
    assert '<option value="newsroom"' not in html
    assert refused.status_code == 422
    assert made.status_code == 302
    assert Agent.objects.get(pk="copy").owner_id == "lab"


def test_the_dialog_has_other_ids_than_the_editor_that_opens_it(editor, story):
    dialog = page(editor, "duplicate", story, 1).content.decode()
    editor_page = editor.get(reverse("agents:edit", args=[story.pk])).content.decode()

    ids = set(re.findall(r' id="([^"]+name[^"]*)"', dialog))
    assert "duplicate_name" in ids
    assert not ids & set(re.findall(r' id="([^"]+)"', editor_page))


@pytest.mark.parametrize(
    "path",
    ["versions:describe", "versions:snapshot", "admin:agents_app_agent_snapshot", "admin:agents_app_agent_duplicate"],
)
def test_the_help_of_a_field_is_where_its_input_refers_to(story, path):
    client = browser(UserFactory(is_staff=True, is_superuser=True))

    html = client.get(
        reverse(path, args=[story.pk, 1] if path == "versions:describe" else [story.pk])
    ).content.decode()

    referred = " ".join(re.findall(r'aria-describedby="([^"]+)"', html)).split()
    assert referred
    assert set(referred) <= set(re.findall(r' id="([^"]+)"', html))


def test_a_user_who_cannot_create_sees_the_reason(viewer, story):
    text = page(viewer, "duplicate", story, 1).content.decode()

    assert "Creating an agent needs the Editor role in a team." in text
    assert send(viewer, story, 1).status_code == 422
