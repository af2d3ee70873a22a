"""Conversations in the playground: a new one, an earlier one, and the caller as whom it is asked."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from memory_app.models import Thread
from runs_app.models import AgentRun
from runs_app.views.playground import conversations
from tests.factories import AgentFactory, member
from tests.memory_app.conftest import add_thread
from tests.page_client import browser
from tests.runs import DEMO, wait_for_end
from tests.runs_app.views.conftest import page_text

pytestmark = pytest.mark.usefixtures("idle_engine")

STORY = {"provider": "demo", "name": "storyteller", "delay": 0}
RULES = {"operator": "AND", "conditions": [{"field": "tier", "operator": "equals", "value": "enterprise"}]}


@pytest.fixture
def concierge(db):
    return AgentFactory(id="concierge", model=DEMO, memory="last-messages")


def address(agent, name="playground"):
    return reverse(f"runs:{name}", args=[agent.pk])


def ask(client, agent, message, **more):
    sent = {"message": message, "column": ["live"], "run": [""], **more}
    assert client.post(address(agent, "run"), sent).status_code == 302
    return wait_for_end(AgentRun.objects.order_by("created_at").last())


def options(page):
    return [(option.value, option.label.split(" (")[0]) for option in page.context["conversations"]]


def test_an_earlier_conversation_is_chosen_again(editor, concierge):
    first = ask(editor, concierge, "My colour is blue.")
    second = ask(editor, concierge, "Another matter.", run=[str(first.pk)], thread=["new"])
    page = editor.get(address(concierge))

    assert first.thread_id != second.thread_id
    assert [label for _, label in options(page)] == ["Another matter.", "My colour is blue."]
    assert page.context["conversations"][0].label.endswith(" UTC)")  # the reader may be elsewhere
    chosen = {"column": ["live"], "run": [str(second.pk)], "thread": [str(first.thread_id)], "act": ""}
    answer = editor.post(address(concierge, "arrange"), chosen, headers={"HX-Request": "true"})
    assert "My colour is blue." in page_text(answer).split("Another matter.")[-1]
    assert answer.headers["HX-Replace-Url"].endswith(f"runs={first.pk}")

    third = ask(editor, concierge, "And now?", run=[str(first.pk)], thread=[str(first.thread_id)])
    assert third.thread_id == first.thread_id


def test_a_conversation_without_runs_is_continued(editor, ann, concierge):
    thread = add_thread(ann, "trip", "alice", agent=concierge, agent_key=concierge.pk, title="A trip")

    page = editor.get(f"{address(concierge)}?columns=live&threads={thread.pk}")

    assert "The runs of this conversation were deleted." in page_text(page)
    assert [label for _, label in options(page)] == ["A trip"]
    assert "alice" in page.context["conversations"][0].label
    run = ask(editor, concierge, "And now?", thread=[str(thread.pk)])
    assert (run.thread_id, run.resource.key) == (thread.pk, "alice")


def test_a_label_is_made_of_the_beginning_of_a_long_message(ann, concierge):
    thread = add_thread(ann, "long", texts=[("user", "word " * 20_000)], agent=concierge, agent_key=concierge.pk)

    with CaptureQueriesContext(connection) as queries:
        (option,) = conversations.conversation_options(concierge, ann, {})

    assert option.value == str(thread.pk)
    assert option.label.startswith(f"{'word ' * 11}word…")
    with connection.cursor() as cursor:
        cursor.execute(queries[0]["sql"])
        assert max(len(str(value)) for value in cursor.fetchone()) < 1000


def test_conversations_of_others_are_neither_offered_nor_continued(editor, concierge):
    theirs = add_thread(member("editor"), "t", agent=concierge, agent_key=concierge.pk, title="Secret")

    page = editor.get(address(concierge))
    run = ask(editor, concierge, "Hello", thread=[str(theirs.pk)])

    assert options(page) == []
    assert "Secret" not in page.content.decode()
    assert run.thread_id != theirs.pk
    assert Thread.objects.count() == 2


def test_publishers_try_the_agent_as_another_caller(editor, concierge):
    concierge.edit({"conditional": {"model": [{"value": STORY, "rules": RULES}]}})
    publisher = browser(member("publisher"))
    facts = {"fact-tier": "enterprise"}
    sent = {"column": ["live"], "run": [""], "thread": ["new"], "act": "", **facts}

    page = publisher.get(address(concierge))
    answer = publisher.post(address(concierge, "arrange"), sent, headers={"HX-Request": "true"})
    run = ask(publisher, concierge, "Hello", **facts)

    assert [(field.name, field.suggestions) for field in page.context["fact_fields"]] == [("tier", ("enterprise",))]
    assert "Model: no variant" in page_text(page)
    assert "Model: variant 1 of 1" in page_text(answer)
    assert "demo/storyteller" in page_text(answer)
    assert (run.input["variants"], run.facts["tier"]) == ({"model": 0}, "enterprise")
    assert "storyteller" in run.output


@pytest.mark.parametrize("facts", ['{"tier":"\\ud800"}', '{"tier":"\\u0000"}', "[" * 100_000, "[]", '{"tier":1}'])
def test_facts_of_a_url_that_no_caller_can_have_are_ignored(db, concierge, facts):
    concierge.edit({"conditional": {"model": [{"value": STORY, "rules": RULES}]}})

    page = browser(member("publisher")).get(address(concierge), {"facts": facts})

    assert [field.text for field in page.context["fact_fields"]] == [""]


def test_facts_have_no_nul(db, concierge):
    concierge.edit({"conditional": {"model": [{"value": STORY, "rules": RULES}]}})

    run = ask(browser(member("publisher")), concierge, "Hello", **{"fact-tier": "enter\0prise"})

    assert (run.facts["tier"], run.input["variants"]) == ("enterprise", {"model": 0})


def test_editors_do_not_choose_their_facts(editor, concierge):
    concierge.edit({"conditional": {"model": [{"value": STORY, "rules": RULES}]}})

    page = editor.get(f'{address(concierge)}?facts={{"tier":"enterprise"}}')
    run = ask(editor, concierge, "Hello", **{"fact-tier": "enterprise"})

    assert page.context["fact_fields"] == []
    assert "Model: no variant" in page_text(page)
    assert "tier" not in run.facts
