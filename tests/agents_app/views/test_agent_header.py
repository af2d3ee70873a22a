"""The header that all pages of an agent share."""

import re

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from access_app.role import Role
from tests.factories import AgentFactory, member
from tests.history_pages import edit
from tests.page_client import browser, editor_form

TABS = {
    "Edit": "agents:edit",
    "Playground": "runs:playground",
    "History": "versions:list",
    "Live history": "versions:live_history",
    "Runs": "runs:of_agent",
    "Quality": "evals:quality",
    "Used by": "agents:used_by",
}
# The pages without a tab of their own, and the tab that they belong to.
OTHER_PAGES = {
    "versions/1": "History",
    "versions/compare": "History",
    "versions/1/activate": "History",
    "versions/2/restore": "History",
    "versions/1/describe": "History",
    "versions/discard-draft": "History",
    "delete": "Edit",
    "archive": "Edit",
    "hand-over": "Edit",
}


@pytest.fixture
def agent(agent):
    edit(agent, name="Night porter")
    edit(agent, publish=False, instructions="Guard the door.", agents=["nobody"])
    return agent


def header(html):
    """Return the title bar of a page: its h1, its text and the links of its tabs by label."""
    html = html[: html.index('<div class="page')]
    bar = html[html.index('<div class="titlebar">') :]
    links = re.findall(r'<a href="([^"]+)"[^>]*>([^<]+)</a>', bar[bar.index("<nav") : bar.index("</nav>")])
    tabs = {label: href for href, label in links}
    (current,) = re.findall(r'aria-current="page"[^>]*>([^<]+)<', bar)
    (name,) = re.findall(r"<h1[^>]*>([^<]*)</h1>", bar)
    return name, " ".join(re.sub(r"<[^>]+>", " ", bar).split()), tabs, current


@pytest.mark.parametrize("tab", TABS)
def test_every_tab_has_the_header(publisher, agent, tab):
    html = publisher.get(reverse(TABS[tab], args=[agent.pk])).content.decode()

    name, text, tabs, current = header(html)
    assert name == "Night porter"
    assert "Live v2 Draft ahead by 1 Broken references" in text
    assert tabs == {label: reverse(route, args=[agent.pk]) for label, route in TABS.items()}
    assert current == tab
    assert html.count("<h1") == 1


@pytest.mark.parametrize("path", OTHER_PAGES)
def test_other_pages_of_the_agent_have_the_header(publisher, agent, path):
    html = publisher.get(f"/agents/{agent.pk}/{path}").content.decode()

    name, _, tabs, current = header(html)
    assert (name, [*tabs], current) == ("Night porter", [*TABS], OTHER_PAGES[path])
    assert html.count("<h1") == 1


def test_the_review_without_scripts_has_the_header(editor, agent):
    response = editor.post(reverse("versions:review", args=[agent.pk]), editor_form(agent, name="Doorman"))

    assert header(response.content.decode())[::3] == ("Night porter", "Edit")


def test_the_agent_is_no_breadcrumb_of_its_pages(publisher, agent):
    for path in ["", "/try", "/versions", "/live-history", "/runs", "/used-by", "/versions/1", "/versions/compare"]:
        html = publisher.get(f"/agents/{agent.pk}{path}").content.decode()
        crumbs = re.findall(r'<nav class="crumbs".*?</nav>', html, re.DOTALL)
        assert f'href="{reverse("agents:edit", args=[agent.pk])}"' not in "".join(crumbs), path


def test_a_viewer_views_instead_of_editing(viewer, agent):
    tabs = header(viewer.get(reverse("versions:list", args=[agent.pk])).content.decode())[2]

    assert "View" in tabs
    assert "Edit" not in tabs


@pytest.mark.parametrize("tab", TABS)
def test_a_tab_of_an_agent_of_another_team_is_not_found(db, tab):
    hidden = AgentFactory(owner_id="newsroom")

    response = browser(member(Role.MANAGER, "elsewhere")).get(reverse(TABS[tab], args=[hidden.pk]))

    assert response.status_code == 404


@pytest.mark.parametrize("tab", TABS)
def test_the_queries_of_a_tab_do_not_grow_with_the_history(publisher, tab):
    def count_queries(versions):
        porter = AgentFactory(agents=["nobody"])
        for number in range(versions):
            edit(porter, publish=False, description=f"{porter.pk} {number}")  # no equal snapshots in caches
        with CaptureQueriesContext(connection) as queries:
            publisher.get(reverse(TABS[tab], args=[porter.pk]))
        # Every second the registry reads again what staff and teams keep.
        registered = "modelprovider|mcpserver|acpagent|knowledgebase|evals_app_scorer"
        return sum(not re.search(registered, query["sql"]) for query in queries)

    count_queries(1)  # fills the caches
    assert count_queries(12) == count_queries(3)
