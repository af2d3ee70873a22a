"""The tabs, the filters and the tags of the agent list."""

import re
from datetime import timedelta

import pytest
from django.db import connection
from django.http import QueryDict
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from access_app.role import Role
from agents_app.editing.archiving import archive_locked
from agents_app.editing.change_context import change
from agents_app.models import Agent, AgentIndex
from agents_app.search.filters import AgentFilters
from agents_app.views import filter_choices
from agents_app.views.list_filters import SORTS, AgentListState
from tests.factories import AgentFactory, MembershipFactory, member
from tests.page_client import browser
from versions_app.models import AgentVersion

pytestmark = pytest.mark.django_db

LIST = reverse("agents:list")


def names(answer):
    return [row.agent.name for row in answer.context["listing"].rows]


def tabs(answer):
    return {tab.label: tab.number for tab in answer.context["listing"].tabs}


def draft(agent, **fields):
    with change(publish=False):
        agent.edit(fields)


def page_words(answer):
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", "", answer.content.decode()))


def age(agent, days):
    Agent.objects.filter(pk=agent.pk).update_unguarded(updated_at=timezone.now() - timedelta(days=days))


def test_tabs_count_the_agents_that_match_the_filters(viewer, publisher):
    draft(AgentFactory(name="One"), description="New")
    AgentFactory(name="Two", tools=["gone"])
    AgentFactory(name="Three")
    archived = AgentFactory(name="Old")
    publisher.post(reverse("agents:archive", args=[archived.pk]))

    assert tabs(viewer.get(LIST)) == {"All": 3, "Drafts": 1, "Broken": 1, "Archived": 1}
    answer = viewer.get(LIST, {"q": "old", "status": "archived"})
    assert tabs(answer) == {"All": 0, "Drafts": 0, "Broken": 0, "Archived": 1}
    assert [tab.label for tab in answer.context["listing"].tabs if tab.is_current] == ["Archived"]
    assert "q=old" in answer.context["listing"].tabs[0].href


def test_a_version_equal_to_live_is_no_draft(viewer, agent):
    AgentVersion.objects.snapshot(agent)

    assert tabs(viewer.get(LIST))["Drafts"] == 0


def test_a_model_filter_names_a_provider_or_one_of_its_models(viewer):
    AgentFactory(name="Small", model={"provider": "openai", "name": "gpt-5-mini"})
    AgentFactory(name="Large", model={"provider": "openai", "name": "org/gpt-5"})
    AgentFactory(name="Other")
    AgentFactory(name="Gateway", model={"provider": "gateway/openai", "name": "gpt-5"})

    assert set(names(viewer.get(LIST, {"model": "openai"}))) == {"Small", "Large"}
    assert names(viewer.get(LIST, {"model": "openai/org/gpt-5"})) == ["Large"]
    assert names(viewer.get(LIST, {"model": "gateway/openai"})) == ["Gateway"]
    assert names(viewer.get(LIST, {"model": "gateway/openai/gpt-5"})) == ["Gateway"]
    assert names(viewer.get(LIST, {"model": "gateway"})) == []
    assert set(names(viewer.get(LIST, {"provider": "openai"}))) == {"Small", "Large"}  # an older link


def test_a_tool_filter_covers_integration_tools(viewer):
    AgentFactory(name="One", tools=["calculator"])
    AgentFactory(name="Two", integration_tools=["composio_github_issues"])
    AgentFactory(name="Three", tools=["calculator-2"])

    assert names(viewer.get(LIST, {"tool": "calculator"})) == ["One"]
    assert names(viewer.get(LIST, {"tool": "composio_github_issues"})) == ["Two"]


def test_a_tool_filter_covers_the_variants_of_the_tools(viewer):
    rules = {"operator": "AND", "conditions": [{"field": "tier", "operator": "equals", "value": "enterprise"}]}
    AgentFactory(name="One", conditional={"tools": [{"value": ["calculator"], "rules": rules}]})
    AgentFactory(name="Two", conditional={"tools": [{"value": ["calculator-2"], "rules": rules}]})

    assert names(viewer.get(LIST, {"tool": "calculator"})) == ["One"]


def test_an_author_filter_finds_agents_with_a_version_by_the_person(viewer):
    ann, bob = member(Role.EDITOR, username="ann"), member(Role.EDITOR, username="bob")
    with change(actor=ann):
        first = AgentFactory(name="One")
    with change(actor=bob):
        first.edit({"description": "New"})
        AgentFactory(name="Two")

    assert names(viewer.get(LIST, {"author": "ann"})) == ["One"]
    assert set(names(viewer.get(LIST, {"author": "bob"}))) == {"One", "Two"}


def test_the_list_is_filtered_by_the_date_of_the_last_change(viewer):
    fresh, month, old = (AgentFactory(name=name) for name in ("Fresh", "Month", "Old"))
    age(fresh, 2)
    age(month, 20)
    age(old, 120)

    assert names(viewer.get(LIST, {"updated": "7d"})) == ["Fresh"]
    assert names(viewer.get(LIST, {"updated": "30d"})) == ["Fresh", "Month"]
    assert names(viewer.get(LIST, {"updated": "old"})) == ["Old"]
    day = (timezone.now() - timedelta(days=20)).date().isoformat()
    assert names(viewer.get(LIST, {"from": day, "to": day})) == ["Month"]


@pytest.mark.parametrize("day", ["2026-02-31", "nonsense", "9999-12-31", "0001-01-01", "2026-13-01", "\0"])
def test_an_invalid_date_is_ignored(viewer, agent, day):
    assert names(viewer.get(LIST, {"from": day, "to": day, "updated": day})) == ["Concierge"]


def test_a_filter_with_too_many_values_is_typed(viewer, monkeypatch):
    monkeypatch.setattr(filter_choices, "MAX_CHOICES", 1)
    AgentFactory(name="One", tools=["calculator", "zip"])

    page = viewer.get(LIST, {"panel": "filters", "tool": "zip"}).content.decode()

    assert '<input name="tool" id="filter-tool" value="zip" list="choices-tool"' in page
    assert '<option value="calculator">' in page
    assert "There are 2. Type one that is not offered." in page
    assert '<select name="author"' in page


def test_tags_are_links_and_filters(viewer):
    AgentFactory(name="One", metadata={"tags": ["beta", "EU", "beta"]})
    AgentFactory(name="Two", metadata={"tags": ["beta"]})
    AgentFactory(name="Three", metadata={"tags": "beta"})
    AgentFactory(name="Four", metadata={"tags": [{"beta": 1}, 7]})

    answer = viewer.get(LIST, {"sort": "name"})
    assert [list(row.tags) for row in answer.context["listing"].rows] == [[], ["beta", "EU"], [], ["beta"]]
    assert 'href="?sort=name&amp;tag=EU"' in answer.content.decode()
    assert set(names(viewer.get(LIST, {"tag": "beta"}))) == {"One", "Two"}
    answer = viewer.get(f"{LIST}?tag=beta&tag=EU")
    assert names(answer) == ["One"]
    assert [(chip.name, chip.value, chip.without) for chip in answer.context["listing"].chips] == [
        ("Tag", "beta", "?tag=EU"),
        ("Tag", "EU", "?tag=beta"),
    ]
    assert answer.content.decode().count('class="tag" href="?tag=beta&amp;tag=EU"') == 2  # not once more


@pytest.mark.parametrize("tags", [7, 1.5, 0, True, {"beta": 1}, "[[[" * 50_000, "7" * 5000])
def test_a_value_that_is_no_list_has_no_tags(viewer, tags):
    AgentFactory(metadata={"tags": tags})

    answer = viewer.get(LIST, {"panel": "filters"})

    assert [list(row.tags) for row in answer.context["listing"].rows] == [[]]
    (offered,) = (field.choices for field in answer.context["fields"] if field.name == "tag")
    assert [choice.value for choice in offered] == [""]


@pytest.mark.parametrize("tag", ['["beta"]', '{"beta":1}', "7", "1"])
def test_a_tag_filter_finds_texts_only(viewer, tag):
    AgentFactory(metadata={"tags": [["beta"], {"beta": 1}, 7, True]})

    assert names(viewer.get(LIST, {"tag": tag})) == []


@pytest.mark.parametrize("value", ["gone", "gone/echo", "a/b/c"])
def test_a_model_of_an_unknown_provider_is_shown_as_it_is(viewer, value):
    """Its slash may belong to the provider or to the model."""
    (chip,) = viewer.get(LIST, {"model": value}).context["listing"].chips

    assert chip.value == value


@pytest.mark.parametrize("name", ["tag", "tool", "model", "author", "owner", "provider"])
@pytest.mark.parametrize("value", ["\0", "%", '"', "' OR 1=1 --", "x" * 5000, "a/b/c", "🧪"])
def test_no_filter_value_is_an_error(viewer, agent, name, value):
    assert viewer.get(LIST, {name: value}, follow=True).status_code == 200


def test_the_panel_offers_what_visible_agents_use():
    person = member(Role.VIEWER, "support", username="ann")
    with change(actor=person):
        AgentFactory(owner_id="support", tools=["calculator"], metadata={"tags": ["eu"]})
    AgentFactory(owner_id="newsroom", tools=["word-count"], metadata={"tags": ["secret"]})
    MembershipFactory(user=person, owner_id="", role=Role.VIEWER)

    fields = browser(person).get(LIST, {"panel": "filters"}).context["fields"]

    values = {field.name: [choice.value for choice in field.choices] for field in fields}
    assert values == {
        "model": ["", "demo", "demo/echo"],
        "tool": ["", "calculator"],
        "tag": ["", "eu"],
        "owner": ["*", "", "support"],
        "author": ["", "ann"],
        "updated": ["", "1d", "7d", "30d", "90d", "old"],
    }


def test_a_form_without_scripts_leads_to_a_short_url(viewer, agent):
    sent = {"q": "greet", "model": "", "tool": "", "tag": ["beta", ""], "owner": "*", "from": "", "panel": "filters"}

    assert viewer.get(LIST, sent).url == "/?q=greet&tag=beta&panel=filters"
    assert viewer.get(LIST, {"owner": ""}).status_code == 200
    assert viewer.get(LIST, {"q": "", "panel": ""}).url == "/"


def test_a_search_while_typing_gets_the_results_and_the_url(viewer):
    AgentFactory(name="One", instructions="Handle refunds.")
    AgentFactory(name="Two")

    answer = viewer.get(LIST, {"q": "refund", "model": "", "status": ""}, headers={"HX-Request": "true"})

    text = answer.content.decode()
    assert "<html" not in text
    assert "Handle <mark>refund</mark>s." in text
    assert re.search(r'id="list-status"[^>]*>1 agent<', text)
    assert answer.headers["HX-Replace-Url"] == "/?q=refund"
    assert "HX-Request" in answer.headers["Vary"]


def test_the_match_is_marked_wherever_it_is(viewer):
    AgentFactory(id="refund-clerk", name="Refunds", description="Long before. " * 20 + "Every refund is checked.")

    text = viewer.get(LIST, {"q": "refund"}).content.decode()

    assert re.search(r"<mark>Refund</mark>s\s*</a>", text)
    assert '<code class="row-id"><mark>refund</mark>-clerk' in text
    assert "Every <mark>refund</mark> is checked." in text


def test_a_row_has_the_provider_before_the_model_and_who_changed_it(viewer):
    ann = member(Role.EDITOR, username="ann")
    with change(actor=ann):
        AgentFactory(model={"provider": "openai", "name": "gpt-5.2"})

    words = page_words(viewer.get(LIST))

    assert "OpenAI gpt-5.2 0 Shared" in words
    assert "by ann" in words


@pytest.mark.parametrize(
    ("query", "title"),
    [
        ({"status": "draft"}, "No drafts"),
        ({"status": "broken"}, "No broken references"),
        ({"status": "archived"}, "No archived agents"),
        ({"status": "draft", "q": "nothing"}, "No agent matches"),
    ],
)
def test_an_empty_tab_differs_from_no_match(viewer, agent, query, title):
    assert title in page_words(viewer.get(LIST, query))


def test_a_search_that_only_archived_agents_match_leads_to_them(viewer):
    archived = AgentFactory(name="Old refunds")
    archive_locked(archived)

    answer = viewer.get(LIST, {"q": "refunds"})

    assert "No agent matches" in page_words(answer)
    assert "1 archived agent matches the search." in page_words(answer)
    assert 'href="?q=refunds&amp;status=archived"' in answer.content.decode()
    assert names(viewer.get(LIST, {"q": "refunds", "status": "archived"})) == ["Old refunds"]
    assert "archived agent matches" not in page_words(viewer.get(LIST, {"q": "nothing"}))


def test_filters_cost_no_query_per_agent(viewer):
    query = f"{LIST}?q=greet&tag=eu&model=demo&tool=calculator&author=ann&updated=7d&panel=filters"

    def create():
        with change(actor=ann):
            AgentFactory(tools=["calculator"], metadata={"tags": ["eu"]})

    def count():
        with CaptureQueriesContext(connection) as queries:
            assert len(viewer.get(query).context["listing"].rows) == Agent.objects.count()
        return len(queries) - 1

    ann = member(Role.EDITOR, username="ann")
    create()
    few = count()
    for _ in range(5):
        create()

    assert count() == few <= 17


def plan(queryset, **options):
    """Return the plan of a query on a table that is too large to scan."""
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("SET LOCAL enable_seqscan = off")
            cursor.execute("SET LOCAL enable_sort = off")
    return queryset.explain(**options)


def test_a_page_is_read_from_the_index_of_its_order(agent):
    listing = AgentListState(Agent.objects.all(), QueryDict())

    assert "agent_updated" in plan(listing.matches.order_by(*SORTS["-updated"])[:50])
    assert "agent_name" in plan(listing.matches.order_by(*SORTS["name"])[:50])


def test_filters_are_read_from_indexes(agent):
    def filtered(order=(), **filters):
        return plan(AgentFilters(**filters).apply(Agent.objects.order_by(*order)))

    assert "agent_owner" in filtered(owner="support")
    assert "agent_updated" in filtered(SORTS["-updated"], first_day=timezone.now().date())
    # PostgreSQL may take the index of the foreign key as long as the table is small.
    assert re.search("version_of_author|agentversion_author_id", filtered(author="ann"))
    words = "agent_index_words" if connection.vendor == "postgresql" else "VIRTUAL TABLE INDEX"
    assert words in plan(AgentIndex.objects.search("greet"))


@pytest.mark.postgres_only
def test_tags_are_read_from_the_index_of_metadata(agent):
    assert "agent_index_metadata" in plan(AgentIndex.objects.with_tag("beta"))
