"""Marks on the words in which the answers in the playground differ, and their figures."""

import re

import pytest
from django.urls import reverse

from tests.runs_app.factories import RunFactory
from tests.runs_app.views.conftest import page_text


@pytest.fixture
def answers(ann, agent):
    """Return a function that creates runs with these answers and the query of a page that shows them."""

    def create(*outputs, **fields):
        runs = [RunFactory(agent=agent, requested_by=ann, output=output, **fields) for output in outputs]
        columns = ",".join(["live", "draft", "v1"][: len(outputs)])
        return {"columns": columns, "runs": ",".join(str(run.pk) for run in runs)}

    return create


def playground(client, agent, query, **more):
    return client.get(reverse("runs:playground", args=[agent.pk]), {**query, **more})


def marked(answer):
    return re.findall(r"<mark>(.*?)</mark>", answer.content.decode(), re.DOTALL)


def test_the_words_that_differ_are_marked_and_counted(editor, agent, answers):
    query = answers("Welcome to the old hotel.", "Welcome to our small hotel.", "Welcome to the old hotel.")

    answer = playground(editor, agent, query, marks="yes")

    assert marked(answer) == ["the old", "our small"]
    text = page_text(answer)
    assert "2 words differ from live (v2)" in text
    assert "Same words as live (v2)" in text
    assert 'aria-pressed="true"' in answer.content.decode()


def test_names_with_underscores_are_words(editor, agent, answers):
    query = answers("Call open_door now.", "Call close_door now.")

    answer = playground(editor, agent, query, marks="yes")

    assert marked(answer) == ["open_door", "close_door"]
    assert "1 word differs from live (v2)" in page_text(answer)


def test_an_answer_that_only_lacks_words_has_not_the_same_words(editor, agent, answers):
    query = answers("Yes, at noon today.", "Yes, at noon.", "Yes.")

    text = page_text(playground(editor, agent, query, marks="yes"))

    assert "1 word of live (v2) is missing" in text
    assert "3 words of live (v2) are missing" in text
    assert "Same words" not in text


def test_words_are_not_marked_before_somebody_asks_for_it(editor, agent, answers):
    answer = playground(editor, agent, answers("Welcome.", "Hello."))

    assert marked(answer) == []
    assert "differ from" not in page_text(answer)


def test_the_button_switches_the_marks(editor, agent, answers):
    query = answers("Welcome.", "Hello.")
    sent = {"column": query["columns"].split(","), "run": query["runs"].split(","), "message": "Hi", "act": "mark"}
    address = reverse("runs:arrange", args=[agent.pk])

    first = editor.post(address, sent, headers={"HX-Request": "true"})
    second = editor.post(address, {**sent, "marks": "yes"}, headers={"HX-Request": "true"})

    assert (marked(first), marked(second)) == (["Welcome", "Hello"], [])
    assert first.headers["HX-Replace-Url"].endswith("&marks=yes")
    assert '<input type="hidden" name="marks" value="yes" form="try-form">' in first.content.decode()


def test_marks_wait_until_all_answers_are_finished(editor, agent, ann, answers):
    query = answers("Welcome.", "Hello.")
    running = RunFactory(agent=agent, requested_by=ann, open=True)
    query = {"columns": "live,draft", "runs": f"{query['runs'].split(',')[0]},{running.pk}"}

    answer = playground(editor, agent, query, marks="yes")

    assert marked(answer) == []
    assert "data-marks-pending" in answer.content.decode()


def test_marked_text_is_escaped(editor, agent, answers):
    answer = playground(editor, agent, answers("<b>one</b>", "<i>one</i>"), marks="yes")

    assert marked(answer) == ["b", "b", "i", "i"]
    assert "<b>" not in answer.content.decode().partition('id="tried"')[2]


def test_a_single_column_has_no_marks(editor, agent, answers):
    answer = playground(editor, agent, answers("Welcome."), marks="yes")

    assert (marked(answer), "Mark differences" in page_text(answer)) == ([], False)


def test_time_tokens_and_cost_of_each_column_are_shown(editor, agent, answers):
    query = answers("Welcome.", "Hello.")
    unknown = answers("Hello.", is_demo=False, usage={}, configuration={"model": {"provider": "openai", "name": "x"}})

    both = page_text(playground(editor, agent, query))
    single = page_text(playground(editor, agent, unknown))

    assert both.count("2.3 s 15 tokens $0 Open the run") == 2
    assert "2.3 s 0 tokens cost unknown Open the run" in single
