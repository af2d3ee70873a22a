"""The list of agents: rows, search, filters, sorting and queries."""

import re

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from access_app.role import Role
from agents_app.editing.archiving import archive_locked
from agents_app.editing.change_context import change
from agents_app.models import Agent
from tests.factories import AgentFactory, member
from tests.page_client import browser

pytestmark = pytest.mark.django_db

LIST = reverse("agents:list")


def names(answer):
    return [row.agent.name for row in answer.context["listing"].rows]


def page_words(answer):
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", "", answer.content.decode()))


def draft(agent, **fields):
    with change(publish=False):
        agent.edit(fields)


def test_the_list_contains_visible_agents_only():
    AgentFactory(name="Ours", owner_id="support")
    AgentFactory(name="Theirs", owner_id="newsroom")

    answer = browser(member(Role.VIEWER, "support")).get(LIST)

    assert names(answer) == ["Ours"]


def test_the_address_of_an_agent_without_its_id_leads_to_the_list(viewer):
    assert viewer.get("/agents?q=ours").url == "/?q=ours"


def test_a_row_shows_live_version_draft_and_broken_references(viewer):
    agent = AgentFactory(tools=["calculator", "gone"])
    draft(agent, name="Porter")
    draft(agent, name="Night porter")

    text = page_words(viewer.get(LIST))

    assert "Night porter" in text
    assert "Live v1 Draft ahead by 2 Broken references" in text


def test_a_row_counts_tools_of_mcp_servers_too(viewer):
    AgentFactory(tools=["calculator"], mcp_clients={"shop": {"tools": {"prices": {}, "stock": {}}}})

    assert '<td class="row-tools align-right">3</td>' in viewer.get(LIST).content.decode()


def test_a_row_names_the_last_author(viewer, agent):
    ann, bob = member(Role.EDITOR, username="ann"), member(Role.PUBLISHER, username="bob")
    with change(actor=ann):
        agent.edit({"name": "Porter"})
    assert viewer.get(LIST).context["listing"].rows[0].updated_by == "ann"

    with change(actor=bob):
        agent.versions.get(version_number=1).activate()

    assert viewer.get(LIST).context["listing"].rows[0].updated_by == "bob"


def test_a_row_of_an_archived_agent_names_who_archived_it(viewer):
    with change(actor=member(Role.EDITOR, username="ann")):
        agent = AgentFactory()
    with change(actor=member(Role.PUBLISHER, username="bob")), transaction.atomic():
        archive_locked(Agent.objects.get_locked(agent.pk))

    assert viewer.get(LIST, {"status": "archived"}).context["listing"].rows[0].updated_by == "bob"


def test_a_row_names_nobody_for_a_change_of_which_no_author_is_recorded(viewer):
    with change(actor=member(Role.EDITOR, username="ann")):
        agent = AgentFactory()
    draft(agent, name="Porter")
    Agent.objects.get().head_version.remove()

    answer = viewer.get(LIST)

    assert answer.context["listing"].rows[0].updated_by is None
    assert "by ann" not in page_words(answer)


def test_search_covers_instructions_and_shows_a_snippet(viewer):
    AgentFactory(name="One", instructions="Never promise a\nRefund of more than that.")
    AgentFactory(name="Two", description="Handles refunds.")
    AgentFactory(name="Three")

    answer = viewer.get(LIST, {"q": "refund"})

    assert set(names(answer)) == {"One", "Two"}
    assert "Never promise a <mark>Refund</mark> of more than that." in answer.content.decode()


@pytest.mark.parametrize("typed", ['"', "%", "a AND", "*", "(", "\0", "'; --", "\\", "<script>"])
def test_no_search_text_is_an_error(viewer, agent, typed):
    assert viewer.get(LIST, {"q": typed}).status_code == 200


def test_search_terms_are_limited_like_the_index(viewer, agent):
    listing = viewer.get(LIST, {"q": "a" + " word" * 5000}).context["listing"]

    assert len(listing.q) == 1000


@pytest.mark.postgres_only
@pytest.mark.parametrize("path", ["/agents/a%00b", "/agents/a%00b/versions"])
def test_a_nul_is_a_400(viewer, path):
    viewer.raise_request_exception = False

    assert viewer.get(path).status_code == 400


def test_an_owner_with_a_nul_is_refused(viewer):
    assert viewer.get("/team?owner=%00").status_code == 404


def test_a_sub_agent_is_broken_only_for_owners_that_may_not_use_it(viewer):
    AgentFactory(id="base")
    AgentFactory(id="theirs", owner_id="newsroom")
    AgentFactory(name="Whole", agents=["base"])
    AgentFactory(name="Torn", agents=["theirs"])

    assert names(viewer.get(LIST, {"status": "broken"})) == ["Torn"]


def test_filters_are_in_the_url_and_can_be_removed(viewer):
    AgentFactory(name="One", model={"provider": "openai", "name": "gpt-5.2"})
    AgentFactory(name="Two", tools=["gone"])
    draft(AgentFactory(name="Three"), description="New")

    assert names(viewer.get(LIST, {"status": "draft"})) == ["Three"]
    assert names(viewer.get(LIST, {"status": "broken"})) == ["Two"]
    answer = viewer.get(LIST, {"model": "openai", "owner": "", "sort": "name"})
    assert names(answer) == ["One"]
    assert [(chip.name, chip.value) for chip in answer.context["listing"].chips] == [
        ("Team", "Shared"),
        ("Model", "OpenAI"),
    ]
    assert answer.context["listing"].chips[1].without == "?owner=&sort=name"


def test_the_list_can_be_sorted(viewer):
    for name in ("Beta", "Alpha", "Gamma"):
        AgentFactory(name=name)

    assert names(viewer.get(LIST, {"sort": "name"})) == ["Alpha", "Beta", "Gamma"]
    assert names(viewer.get(LIST, {"sort": "-name"})) == ["Gamma", "Beta", "Alpha"]
    assert names(viewer.get(LIST)) == ["Gamma", "Alpha", "Beta"]
    assert viewer.get(LIST, {"sort": "nonsense", "page": "x"}).status_code == 200


def test_an_empty_list_differs_from_no_match(editor, viewer, agent):
    assert "No agent matches" in page_words(viewer.get(LIST, {"q": "nothing"}))

    agent.delete()

    assert "No agents yet" in page_words(editor.get(LIST))
    assert "You are not in a team with agents yet." in page_words(viewer.get(LIST))


# --- What it costs


def test_a_snippet_ends_between_words(viewer):
    AgentFactory(instructions=f"{'Before everything. ' * 9}Ask for the refund form. {'Afterwards nothing. ' * 9}")

    (row,) = viewer.get(LIST, {"q": "refund"}).context["listing"].rows

    snippet = "".join(part.text for part in row.snippet)
    assert [part.text for part in row.snippet if part.marked] == ["refund"]
    assert set(snippet.split()) - {"…"} <= set(row.agent.instructions.split())
    assert (snippet[:2], snippet[-2:]) == ("… ", " …")


def test_the_number_of_queries_is_constant(viewer):
    for _ in range(3):
        draft(AgentFactory(agents=["proofreader", "agent-x"]), name="Porter")
    few = count_queries(viewer)

    for _ in range(10):
        draft(AgentFactory(agents=["proofreader", "agent-x"]), name="Porter")

    assert count_queries(viewer) == few == 13


def count_queries(client, **params):
    with CaptureQueriesContext(connection) as queries:
        client.get(LIST, params)
    return len(queries)
