"""The pickers of the editor: the order of what is chosen, and the search for what can be added."""

import re

import pytest
from django.urls import reverse

from access_app.role import Role
from agents_app.editing.change_context import change
from tests.factories import AgentFactory, member
from tests.form_submission import form_data
from tests.page_client import browser, editor_form

pytestmark = pytest.mark.django_db


def search(client, agent, field, query=""):
    """Return the keys that the search finds."""
    html = client.get(reverse("agents:options", args=[agent.pk, field]), {"q": query}).content.decode()
    return re.findall(r'data-option="([^"]*)"', html)


def page(client, agent):
    return client.get(reverse("agents:edit", args=[agent.pk])).content.decode()


def save(client, agent, **changed):
    response = client.post(reverse("agents:edit", args=[agent.pk]), editor_form(agent, publish="no", **changed))
    agent.refresh_from_db()
    return response


def test_chosen_keys_are_listed_and_saved_in_order(editor):
    agent = AgentFactory(tools=["word-count", "calculator", "text-search"])
    assert form_data(page(editor, agent)).getlist("tools") == agent.tools

    save(editor, agent, tools=["text-search", "word-count", "current-time"])

    assert agent.tools == ["text-search", "word-count", "current-time"]
    assert form_data(page(editor, agent)).getlist("tools") == agent.tools


def test_keys_are_moved_by_their_position_without_scripts(editor):
    agent = AgentFactory(tools=["word-count", "calculator", "text-search"])
    data = form_data(page(editor, agent), scripts=False)
    assert [data[f"tools-{place}-position"] for place in (1, 2, 3)] == ["1", "2", "3"]

    save(editor, agent, tools=agent.tools, **{"tools-3-position": "1"})

    assert agent.tools == ["text-search", "word-count", "calculator"]


def test_the_search_finds_words_in_title_key_and_description(editor, agent):
    assert search(editor, agent, "tools", "WORDS count") == ["word-count"]
    assert search(editor, agent, "tools", "calc") == ["calculator"]
    assert search(editor, agent, "integration_tools", "upper") == ["text_case_upper"]
    assert search(editor, agent, "input_processors", "mask") == ["mask-email"]
    assert search(editor, agent, "agents", "proofreader") == ["proofreader"]
    assert search(editor, agent, "tools", "nothing-like-this") == []


@pytest.mark.parametrize("query", ["Éclair", "éclair", "ÉCLAIR (DE", "пекарь", "ПЕКАРЬ"])
def test_the_search_of_sub_agents_ignores_the_case_of_all_letters(editor, agent, query):
    AgentFactory(id="eclair", name="Éclair (de Paris)", description="Пекарь")

    assert search(editor, agent, "agents", query) == ["eclair"]


def test_every_one_of_many_agents_is_found(editor, agent, django_assert_max_num_queries):
    for number in range(45):
        AgentFactory(id=f"desk-{number}", name=f"Desk {number:04}", description=f"Floor {number}")

    with django_assert_max_num_queries(7):
        html = editor.get(reverse("agents:options", args=[agent.pk, "agents"])).content.decode()
    assert "26 more. Type to narrow the search." in html
    assert search(editor, agent, "agents", "desk 0044") == ["desk-44"]
    assert search(editor, agent, "agents", "desk-43") == ["desk-43"]
    assert search(editor, agent, "agents", "floor 42") == ["desk-42"]


def test_the_search_finds_only_agents_that_the_viewer_may_see_and_the_agent_may_use():
    team = browser(member(Role.EDITOR, "support"))
    agent = AgentFactory(owner_id="support", name="Own agent")
    AgentFactory(id="mate", owner_id="support", name="Helper one")
    AgentFactory(id="shared", owner_id="", name="Helper two")
    AgentFactory(id="foreign", owner_id="sales", name="Helper three")

    assert search(team, agent, "agents", "helper") == ["mate"]  # the shared space needs a role of its own
    assert search(team, agent, "agents", "own") == []


def test_a_stranger_finds_nothing(agent):
    stranger = browser(member(Role.MANAGER, "elsewhere"))

    assert stranger.get(reverse("agents:options", args=[agent.pk, "agents"])).status_code == 404
    assert stranger.post(reverse("agents:fields", args=[agent.pk]), {}).status_code == 404
    assert search(stranger, AgentFactory(owner_id="elsewhere"), "agents", "concierge") == []


def test_a_new_agent_finds_the_agents_of_its_team(editor):
    AgentFactory(id="mate", owner_id="", name="Helper")

    url = reverse("agents:new_options", args=["agents"])
    assert 'data-option="mate"' in editor.get(url, {"q": "helper", "owner_id": ""}).content.decode()
    assert editor.get(reverse("agents:new_options", args=["name"])).status_code == 404


@pytest.mark.parametrize("field", ["tools", "workflows", "agents", "integration_tools"])
def test_an_unregistered_key_is_a_row_with_remove_and_keep(editor, field):
    agent = AgentFactory(**{field: ["gone"]})

    (row,) = re.findall(r'<li class="picker-row picker-missing".*?</li>', page(editor, agent), re.DOTALL)
    assert "<b>not registered</b>" in row
    assert re.search(rf'name="{field}" value="gone" checked> Keep', row)
    assert "Remove gone" in row
    assert save(editor, agent, name="Doorman").status_code == 302
    assert getattr(agent, field) == ["gone"]
    save(editor, agent, **{field: []})
    assert getattr(agent, field) == []


def test_thousands_of_unregistered_keys_are_a_small_page_that_keeps_them(editor):
    keys = {field: [f"gone-{number}" for number in range(1000)] for field in ("tools", "workflows", "agents")}
    agent = AgentFactory(**keys, background_tasks={"tools": {"gone-999": True}})

    html = page(editor, agent)
    sent = dict(form_data(html).lists())
    answer = editor.post(reverse("agents:edit", args=[agent.pk]), {**sent, "name": "Doorman", "publish": "no"})

    assert len(html) < 1_250_000
    assert html.count("<summary>900 more</summary>") == 3
    assert "2,900 more tools are not shown." in html
    assert "2,997 more entries are not registered" in html
    assert sum(map(len, sent.values())) < 5000
    assert answer.status_code == 302
    agent.refresh_from_db()
    assert agent.name == "Doorman"
    assert {field: getattr(agent, field) for field in keys} == keys
    assert agent.background_tasks == {"tools": {"gone-999": True}}


def test_one_tool_without_a_row_for_background_tasks_is_counted_in_the_singular(editor):
    html = page(editor, AgentFactory(tools=[f"gone-{number}" for number in range(101)]))

    assert "1 more tool is not shown. What is stored for it stays, and the API changes it." in html


def test_an_unregistered_scorer_memory_or_processor_is_a_red_row(editor):
    agent = AgentFactory(scorers={"gone": {}}, memory="forgotten", input_processors=[{"key": "lost"}])

    html = page(editor, agent)

    for key in ("gone", "forgotten", "lost"):
        (row,) = re.findall(rf'picker-missing"(?:(?!picker-missing).)*?<code>{key}</code>.*?Remove', html, re.DOTALL)
        assert "not registered" in row
        assert "Keep" in row


def test_processors_have_rows_with_their_arguments(editor, agent):
    data = {
        "input_processors-item": ["b:key:mask-email", "a:key:trim-whitespace"],
        "input_processors-a-row-name": ["x"],
    }
    data |= {"input_processors-a-row-kind": ["number"], "input_processors-a-row-value": ["1.50"]}
    form = editor_form(agent, publish="no", **data)
    del form["input_processors"]

    editor.post(reverse("agents:edit", args=[agent.pk]), form)

    agent.refresh_from_db()
    assert agent.input_processors == [{"key": "mask-email"}, {"key": "trim-whitespace", "x": 1.5}]


def test_a_processor_is_added_without_scripts(editor, agent):
    form = form_data(page(editor, agent), scripts=False)
    form["input_processors-add"] = "mask-email"
    form["metadata-tags"] = "night, desk"

    editor.post(reverse("agents:edit", args=[agent.pk]), {**form.dict(), "publish": "no"})

    agent.refresh_from_db()
    assert agent.input_processors == [{"key": "mask-email"}]
    assert agent.metadata == {"tags": ["night", "desk"]}


def test_the_other_view_of_a_field_shows_what_was_typed(editor, agent):
    with change(publish=False):
        agent.edit({"metadata": {"team": "night"}})
    form = form_data(page(editor, agent))
    form.setlist("metadata-row-value", ["day"])
    url = reverse("agents:fields", args=[agent.pk])

    html = editor.post(url, {**form.dict(), "show": "metadata:json"}).content.decode()

    json_view = form_data(html)
    assert json_view["metadata"] == '{\r\n  "team": "day"\r\n}'
    agent.refresh_from_db()
    assert agent.metadata == {"team": "night"}
    html = editor.post(url, {**json_view.dict(), "metadata": '{"team": ', "show": "metadata:fields"}).content.decode()
    assert form_data(html)["metadata"] == '{"team": '
    assert "line 1, column 10" in html
