"""The list of runs and its filters."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from tests.factories import AgentFactory, member
from tests.page_client import browser
from tests.runs_app.factories import RunFactory
from tests.runs_app.views.conftest import page_text

LIST = reverse("runs:list")


def questions(answer):
    return [row.run.question for row in answer.context["listing"].rows]


def test_editors_see_their_own_runs_and_publishers_see_all(editor, ann, agent):
    RunFactory(agent=agent, requested_by=ann, prompt="Mine")
    RunFactory(agent=agent, prompt="Theirs")

    assert questions(editor.get(LIST)) == ["Mine"]
    assert sorted(questions(browser(member("publisher")).get(LIST))) == ["Mine", "Theirs"]


def test_a_row_shows_version_and_usage(editor, ann, agent):
    RunFactory(agent=agent, requested_by=ann, prompt="Hello", is_demo=False, cost="0.00213")

    assert "Hello Concierge v2 Succeeded 2.3 s 15 tokens $0.0021" in page_text(editor.get(LIST))


def test_the_result_of_a_background_task_is_named_instead_of_its_markup(editor, ann, agent):
    RunFactory(agent=agent, requested_by=ann, prompt='<background-task id="1" tool="stock-count" status="completed">8')

    assert "Result of the background task stock-count" in page_text(editor.get(LIST))


def test_sub_runs_are_not_listed(editor, ann, agent):
    run = RunFactory(agent=agent, requested_by=ann, prompt="Mine")
    RunFactory(agent=agent, requested_by=ann, prompt="Inner", parent=run)

    assert questions(editor.get(LIST)) == ["Mine"]


@pytest.mark.parametrize(
    ("query", "left"),
    [
        ("agent=other", ["Other"]),
        ("status=failed", ["Failed"]),
        ("version=1", ["Old"]),
        ("by=me", ["Failed", "Old", "Other"]),
        ("agent=other&status=failed", []),
        ("status=nonsense&version=x", ["Failed", "Old", "Other", "Theirs"]),
    ],
)
def test_runs_are_filtered(ann, agent, query, left):
    publisher = member("publisher")
    RunFactory(agent=AgentFactory(id="other"), requested_by=publisher, version_number=7, prompt="Other")
    RunFactory(agent=agent, requested_by=publisher, version_number=1, prompt="Old")
    RunFactory(agent=agent, requested_by=publisher, status="failed", prompt="Failed")
    RunFactory(agent=agent, requested_by=ann, prompt="Theirs")

    assert sorted(questions(browser(publisher).get(f"{LIST}?{query}"))) == left


def test_a_filter_is_a_chip_that_can_be_removed(editor, ann, agent):
    RunFactory(agent=agent, requested_by=ann)

    listing = editor.get(f"{LIST}?agent={agent.pk}&version=2").context["listing"]

    assert [(chip.name, chip.value) for chip in listing.chips] == [("Agent", agent.name), ("Version", "v2")]
    assert listing.chips[1].without == f"?agent={agent.pk}"
    assert listing.chips[0].without == "?"  # a version number needs its agent


def test_the_value_of_a_filter_has_the_direction_of_its_text(editor, ann, agent):
    RunFactory(agent=agent, requested_by=ann)

    page = editor.get(f"{LIST}?agent={agent.pk}")

    assert f'<span dir="auto"><b>Agent</b> {agent.name}</span>' in page.content.decode()


def test_versions_are_offered_after_choosing_an_agent(editor, ann, agent):
    RunFactory(agent=agent, requested_by=ann)

    offers = dict(editor.get(f"{LIST}?agent={agent.pk}").context["available_filters"])

    assert offers["Version"] == [("v2", f"?agent={agent.pk}&version=2")]
    page = editor.get(f"{LIST}?by=me&version=2")
    every = dict(page.context["available_filters"])
    assert '<input type="hidden" name="by" value="me">' in page.content.decode()
    assert 'aria-label="ID of another agent"' in page.content.decode()
    assert 'name="version"' not in page.content.decode()
    assert "Version" not in every
    assert every["Agent"] == [(agent.name, f"?by=me&version=2&agent={agent.pk}")]


def test_runs_without_a_version_offer_none(editor, ann, agent):
    RunFactory(agent=agent, requested_by=ann, version_number=None, target="unsaved")

    assert "Version" not in dict(editor.get(f"{LIST}?agent={agent.pk}").context["available_filters"])


def test_an_empty_list_differs_from_no_match(editor):
    assert "No runs yet" in page_text(editor.get(LIST))
    assert "No matching runs" in page_text(editor.get(f"{LIST}?status=failed"))


def test_the_number_of_queries_is_constant(editor, ann, agent):
    RunFactory(agent=agent, requested_by=ann)
    with CaptureQueriesContext(
        connection,
    ) as few:
        editor.get(LIST)
    RunFactory.create_batch(5, agent=agent, requested_by=ann)
    with CaptureQueriesContext(connection) as many:
        editor.get(LIST)

    assert len(few) == len(many)


def test_a_row_shows_the_last_user_message(editor, ann, agent):
    messages = [{"role": "user", "content": [{"type": "text", "text": text}]} for text in ("First" * 100, "Last")]
    RunFactory(agent=agent, requested_by=ann, input={"messages": messages})

    (question,) = questions(editor.get(LIST))

    assert question.startswith("FirstFirst")
    assert len(question) == 160


def test_a_late_page_searches_the_keys_before_it_loads_rows(editor, ann, agent):
    for number in range(52):
        RunFactory(agent=agent, requested_by=ann, prompt=f"Question {number}")

    with CaptureQueriesContext(connection) as queries:
        answer = editor.get(f"{LIST}?page=2")

    assert questions(answer) == ["Question 1", "Question 0"]
    (rows,) = [query["sql"] for query in queries if "OFFSET 50" in query["sql"]]
    assert "usage" in rows.partition("OFFSET")[0]
    assert "usage" not in rows[rows.rindex("SELECT", 0, rows.index("OFFSET")) :]
