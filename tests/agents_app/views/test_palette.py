"""The search of the command palette over agents, their tabs and the other pages."""

import re

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from access_app.role import Role
from tests.factories import AgentFactory, UserFactory, member
from tests.page_client import browser

pytestmark = pytest.mark.django_db

PALETTE = reverse("agents:palette")


def palette(client, **params):
    """Return the labels and notes by group."""
    groups = client.get(PALETTE, params).context["groups"]
    return {group.label: [f"{entry.label} {entry.note}".strip() for entry in group.entries] for group in groups}


def test_agents_are_found_by_their_words_with_names_first(viewer):
    AgentFactory(id="b", name="Concierge", instructions="Help the night porter.")
    AgentFactory(id="c", name="The porter")
    AgentFactory(id="a", name="Porter")
    AgentFactory(id="hidden", name="Porter", owner_id="newsroom")

    assert palette(viewer, q="port")["Agents"] == ["Porter a", "The porter c", "Concierge b"]


def test_names_come_first_in_upper_and_lower_case_of_any_alphabet(viewer):
    AgentFactory(id="a", name="Öko-Ärzte")
    AgentFactory(id="b", name="Ärzte")
    AgentFactory(id="c", name="Concierge", instructions="Call the Ärzte.")

    assert palette(viewer, q="ärz")["Agents"] == ["Ärzte b", "Öko-Ärzte a", "Concierge c"]


def test_a_tab_of_an_agent_is_found_by_both_names(viewer):
    AgentFactory(id="porter", name="Night porter")

    groups = viewer.get(PALETTE, {"q": "porter hist"}).context["groups"]

    (group,) = [group for group in groups if group.label == "Tabs"]
    assert [(entry.label, entry.note, entry.href) for entry in group.entries] == [
        ("History", "Night porter", "/agents/porter/versions"),
        ("Live history", "Night porter", "/agents/porter/live-history"),
    ]


def test_the_tabs_of_the_current_agent_come_first(viewer):
    AgentFactory(id="porter", name="Night porter")
    AgentFactory(id="theirs", owner_id="newsroom")

    groups = palette(viewer, current="porter")

    assert [*groups] == ["Night porter", "Newest changes", "Pages"]
    assert groups["Night porter"] == [
        "Edit",
        "Playground",
        "History",
        "Live history",
        "Runs",
        "Usage",
        "Quality",
        "Used by",
    ]
    assert palette(viewer, current="porter", q="play")["Night porter"] == ["Playground"]
    assert [*palette(viewer, current="theirs")] == ["Newest changes", "Pages"]


def test_pages_are_found_by_other_words_and_by_role(viewer, editor):
    assert palette(viewer, q="imports") == {"Pages": ["Import and export"]}
    assert palette(viewer, q="members") == {"Pages": ["Team"]}
    assert palette(viewer, q="threads") == {"Pages": ["Conversations"]}
    assert palette(viewer, q="experiments")["Pages"] == ["Experiments"]
    assert palette(viewer, q="evaluations")["Pages"] == ["Datasets", "Experiments", "Scorers"]
    assert palette(viewer, q="create") == {}
    assert palette(editor, q="create") == {"Pages": ["New agent"]}
    assert palette(viewer, q="administration") == {}
    assert palette(browser(UserFactory(is_staff=True)), q="administration") == {"Pages": ["Administration"]}


def test_all_links_lead_somewhere(publisher):
    AgentFactory(id="porter")

    for group in publisher.get(PALETTE, {"current": "porter"}).context["groups"]:
        for entry in group.entries:
            assert publisher.get(entry.href).status_code == 200, entry


def test_the_dialog_gets_options_and_a_browser_without_scripts_a_page(viewer):
    AgentFactory(id="porter", name="Night porter")

    options = viewer.get(PALETTE, {"q": "night"}, headers={"HX-Request": "true"}).content.decode()
    page = viewer.get(PALETTE, {"q": "night"}).content.decode()

    assert re.search(r'<a class="palette-option" role="option"[^>]*href="/agents/porter"', options)
    assert re.search(r'id="palette-status"[^>]*>1 result<', options)
    assert "<html" not in options
    assert re.search(r'<a class="palette-option" href="/agents/porter"', page)
    assert "Nothing matches" in viewer.get(PALETTE, {"q": "xyzzy"}).content.decode()


@pytest.mark.parametrize("query", ["\0", '"', "%", "a" * 5000, "'; --", "*", "   "])
def test_no_query_is_an_error(viewer, query):
    assert viewer.get(PALETTE, {"q": query, "current": query}).status_code == 200


def test_archived_agents_are_left_out(publisher):
    AgentFactory(id="old", name="Porter")
    publisher.post(reverse("agents:archive", args=["old"]))

    assert "Agents" not in palette(publisher, q="porter")


def test_strangers_must_sign_in(client):
    assert client.get(PALETTE).status_code == 302


def test_the_number_of_queries_does_not_grow(viewer):
    def count():
        with CaptureQueriesContext(connection) as queries:
            palette(viewer, q="porter hist", current="porter-0")
        return len(queries)

    AgentFactory(id="porter-0", name="Porter")
    few = count()
    for number in range(1, 10):
        AgentFactory(id=f"porter-{number}", name="Porter")

    assert count() == few <= 7


def test_every_page_has_a_button_for_the_palette():
    text = browser(member(Role.VIEWER)).get("/").content.decode()

    assert f'href="{PALETTE}" data-opens-palette' in text
    assert 'role="combobox"' in text
    assert "Go to an agent or a page</dt>" in text
