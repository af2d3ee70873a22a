"""Conversations that recall earlier ones, over HTTP with the demo model."""

import re

import pytest

from jobs_app import runner
from jobs_app.models import Job
from memory_app.models import Message, Thread
from memory_app.recall.indexing import INDEX_MESSAGES
from runs_app.models import AgentRun, RunStep
from tests.api_client import Caller
from tests.factories import AgentFactory, api_key, member
from tests.page_client import browser
from tests.runs import DEMO

pytestmark = pytest.mark.usefixtures("idle_engine")

COLOUR = "By the way, my favourite colour is teal."
QUESTION = "Which colour do I like best?"


@pytest.fixture
def user():
    return member("publisher")


@pytest.fixture
def caller(user):
    AgentFactory(id="concierge", model=DEMO, memory={"options": {"semanticRecall": {"topK": 1, "messageRange": 0}}})
    return Caller(api_key(user))


def ask(caller, text, thread, resource="alice"):
    memory = {"thread": thread, "resource": resource}
    answer = caller.post("/api/agents/concierge/generate", {"messages": text, "memory": memory})
    assert answer.status_code == 200, answer.body
    for job in Job.objects.filter(kind=INDEX_MESSAGES, state=Job.State.QUEUED):
        runner.run_claimed(str(job.pk))
    return answer.body["text"]


def page_text(answer):
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", answer.content.decode()))


def test_a_new_conversation_recalls_what_was_told_in_another_one(caller):
    ask(caller, COLOUR, "first")

    assert COLOUR in ask(caller, QUESTION, "second")
    assert "teal" not in ask(caller, QUESTION, "third", "bob")


@pytest.mark.parametrize("is_durable", [False, True])
def test_a_run_without_a_thread_recalls_the_conversations_of_its_caller(caller, user, is_durable):
    ask(caller, COLOUR, "first", f"u{user.pk}")
    body = {"messages": QUESTION, "durable": is_durable}

    own = caller.post("/api/agents/concierge/generate", body)
    foreign = Caller(api_key(member("publisher"))).post("/api/agents/concierge/generate", body)

    assert COLOUR in own.body["text"]
    assert (foreign.status_code, "teal" in foreign.body["text"]) == (200, False)


def test_the_page_of_a_run_shows_what_it_remembered(caller, user):
    ask(caller, COLOUR, "first")
    ask(caller, QUESTION, "second")
    run = AgentRun.objects.latest("created_at")
    (item,) = run.remembered["recall"]

    page = browser(user).get(f"/runs/{run.pk}")
    link = re.search(r'href="(/threads/first\?[^"]+)"', page.content.decode())[1].replace("&amp;", "&")

    assert f"{user.get_username()} in first" in page_text(page)
    assert f"Score {item['score']:.2f} {COLOUR}" in page_text(page)
    assert link == "/threads/first?message=1#message-1"
    assert 'id="message-1"' in browser(user).get(link).content.decode()


def test_who_may_not_read_a_conversation_does_not_read_it_on_the_page_of_a_run(caller):
    ask(caller, COLOUR, "first")
    ask(caller, QUESTION, "second")
    Thread.objects.filter(key="first").update(agent=AgentFactory(id="private", owner_id="legal"))
    run = AgentRun.objects.latest("created_at")

    text = page_text(browser(member("publisher")).get(f"/runs/{run.pk}"))

    remembered = text.partition("What it remembered")[2].partition("Timeline")[0]
    assert "1 message is deleted or in a conversation that you cannot read." in remembered
    assert "teal" not in remembered


def test_a_deleted_message_is_not_shown(caller, user):
    ask(caller, COLOUR, "first")
    ask(caller, QUESTION, "second")
    run = AgentRun.objects.latest("created_at")
    Message.objects.filter(text=COLOUR).delete()

    assert "1 message is deleted or in" in page_text(browser(user).get(f"/runs/{run.pk}"))


def test_a_durable_run_journals_what_it_recalled(caller):
    ask(caller, COLOUR, "first")
    ask(caller, QUESTION, "second")

    run = AgentRun.objects.latest("created_at")
    (step,) = RunStep.objects.filter(run=run, key__contains="find_similar")

    assert COLOUR in str(step.result)
