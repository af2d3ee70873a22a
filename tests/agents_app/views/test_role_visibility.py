"""Controls and hints that each role sees."""

import re

import pytest
from django.urls import reverse

from access_app.role import Role
from agents_app.models import Agent
from tests.factories import AgentFactory, MembershipFactory, member
from tests.history_pages import edit, page
from tests.page_client import browser

pytestmark = pytest.mark.django_db
READS = "You can view this agent. Editing needs the Editor role in Shared."
DRAFTS = "You can save drafts. Publishing needs the Publisher role in Shared."


@pytest.fixture
def drafted(agent):
    edit(agent, instructions="Greet guests warmly.", tools=["text-search", "gone"])
    edit(agent, publish=False, name="Doorman")
    return agent


def editor_of(client, agent):
    return client.get(reverse("agents:edit", args=[agent.pk])).content.decode()


def main_of(text):
    """Return the HTML of the main part of a page."""
    return text.partition('<main id="main"')[2].partition("</main>")[0]


def controls(text):
    """Return the POST forms and action links of the page."""
    acts = r"/(activate|restore|describe|duplicate|delete|save|discard-draft|undo|hand-over)\b"
    return [
        *re.findall(r'<(?:form|button)[^>]*(?:method="post"|hx-post)', text),
        *re.findall(rf'href="[^"]*{acts}', text),
    ]


def test_a_viewer_gets_a_read_only_editor_with_a_reason(viewer, drafted):
    html = main_of(editor_of(viewer, drafted))

    assert READS in html
    assert "Greet guests warmly." in html
    assert "<code>gone</code> not registered" in html
    assert not re.search(r"<(input|textarea|select)", html)
    assert controls(html) == []


@pytest.mark.parametrize(
    ("name", "more"), [("list", []), ("view", [2]), ("view", [3]), ("compare", []), ("live_history", [])]
)
def test_a_viewer_gets_a_history_without_actions(viewer, drafted, name, more):
    html = main_of(page(viewer, name, drafted, *more).content.decode())

    assert controls(html) == []
    assert READS in html


@pytest.mark.parametrize(("name", "more"), [("list", []), ("view", [1]), ("compare", [])])
def test_an_editor_is_told_which_role_publishes(editor, drafted, name, more):
    html = main_of(page(editor, name, drafted, *more).content.decode())

    assert DRAFTS in html
    assert set(controls(html)) >= {"restore"}
    assert not {"activate", "delete"} & set(controls(html))


def test_a_publisher_sees_no_role_hints(publisher, drafted):
    for text in (editor_of(publisher, drafted), page(publisher, "list", drafted).content.decode()):
        assert " role in " not in text
    assert {"activate", "restore", "delete"} <= set(controls(page(publisher, "list", drafted).content.decode()))


def test_the_head_version_cannot_be_restored(publisher, drafted):
    history = page(publisher, "list", drafted).content.decode()
    compared = page(publisher, "compare", drafted).content.decode()
    own = page(publisher, "view", drafted, 3).content.decode()
    html = page(publisher, "restore", drafted, 3).content.decode()

    for offering in (history, compared):
        assert 'id="restore-2"' in offering
        assert 'id="restore-3"' not in offering
    assert 'id="restore-3"' not in own
    assert "Editing already continues from v3" in html
    assert '<button class="button' not in main_of(html)


def test_a_viewer_who_may_create_elsewhere_may_still_duplicate(agent):
    user = member(Role.VIEWER)
    MembershipFactory(user=user, owner_id="lab", role=Role.EDITOR)

    assert controls(main_of(editor_of(browser(user), agent))) == ["duplicate"]


def test_a_viewer_who_posts_the_editor_form_is_refused(viewer, agent):
    answer = viewer.post(reverse("agents:edit", args=[agent.pk]), {"name": "Mine"})

    assert answer.status_code == 403
    assert Agent.objects.get(pk=agent.pk).name == agent.name


@pytest.mark.parametrize(
    ("role", "offered"),
    [
        (Role.VIEWER, ["Export"]),
        (Role.EDITOR, ["Duplicate", "Export"]),
        (Role.PUBLISHER, ["Duplicate", "Export", "Delete"]),
    ],
)
def test_bulk_actions_depend_on_the_role(role, offered):
    AgentFactory()
    html = browser(member(role)).get(reverse("agents:list")).content.decode().partition("bulk-bar")[2]

    assert [word for word in ("Duplicate", "Export", "Delete") if f"{word}</button>" in html] == offered
