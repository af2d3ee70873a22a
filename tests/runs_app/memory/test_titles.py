"""Titles of threads, which a job writes after the first answer."""

from uuid import uuid4

import pytest

from jobs_app.models import Job
from jobs_app.runner import run_claimed
from memory_app.history.titles import TITLE_THREAD, clean_title
from memory_app.models import Message, Thread
from runs_app import tasks  # noqa: F401  registers the handler
from runs_app.memory.titling import conversation
from tests.api_client import Caller
from tests.factories import AgentFactory, api_key, member
from tests.runs import DEMO
from tests.served import wait_until

pytestmark = pytest.mark.usefixtures("idle_engine")

GENERATE = "/api/agents/concierge/generate"


@pytest.fixture
def caller():
    return Caller(api_key(member("editor")))


def ask(caller, text, **memory):
    answer = caller.post(GENERATE, {"messages": text, "memory": {"thread": "t", **memory}})
    assert answer.status_code == 200, answer.body


def titled(**options):
    AgentFactory(id="concierge", model=DEMO, memory={"options": {"generateTitle": options or True}})


def write_titles():
    for job in Job.objects.filter(kind=TITLE_THREAD):
        run_claimed(str(job.pk))
    return Thread.objects.get().title


def test_the_first_answer_gives_a_thread_its_title(caller):
    titled()

    ask(caller, "A trip to Lisbon\nin May")
    ask(caller, "And Porto")

    assert write_titles() == "A trip to Lisbon"
    count = Job.objects.filter(kind=TITLE_THREAD).count()
    ask(caller, "And Faro")
    assert Job.objects.filter(kind=TITLE_THREAD).count() == count


def test_a_conversation_that_a_message_has_woken_gets_a_title(caller):
    """Its first words are a signal. Other signals are not words of the user."""
    titled()
    target = {"threadId": "t", "resourceId": "alice"}
    note = {"type": "weather", "contents": "Rain"}
    caller.post("/api/agents/concierge/signals", {"signal": note, "ifIdle": {"behavior": "persist"}, **target})

    caller.post("/api/agents/concierge/send-message", {"message": "A trip to Lisbon", **target})
    wait_until(lambda: Job.objects.filter(kind=TITLE_THREAD).exists(), 20, "the end of the run")

    assert conversation(Thread.objects.get())[:2] == [("signal", "Rain"), ("user", "A trip to Lisbon")]
    assert write_titles() == "A trip to Lisbon"


@pytest.mark.parametrize("has_answered", [True, False])
def test_it_has_no_signal_that_input_processors_may_not_have_seen(has_answered, caller):
    titled()
    ask(caller, "A trip to Lisbon")
    signal, answer = Message.objects.order_by("number")[:2]
    run_id = answer.run_id if has_answered else uuid4()  # of a run that failed
    Message.objects.filter(pk=signal.pk).update(role="signal", seen_by=run_id)

    assert ("A trip to Lisbon" in dict(conversation(signal.thread)).values()) == has_answered


def test_a_title_that_somebody_gave_stays(caller):
    titled()
    ask(caller, "Hello")
    Thread.objects.update(title="Mine")

    assert write_titles() == "Mine"


def test_it_waits_for_enough_messages_and_a_call_can_switch_it_off(caller):
    titled(minMessages=3)

    ask(caller, "One")
    assert not Job.objects.filter(kind=TITLE_THREAD).exists()
    ask(caller, "Two", options={"generateTitle": False})
    assert not Job.objects.filter(kind=TITLE_THREAD).exists()
    ask(caller, "Three")
    assert write_titles() == "One"


def test_a_title_has_a_model_and_instructions_of_its_own(caller, spy):
    spy.answers["title"] = "Lisbon in verse"
    titled(model="spy/title", instructions="Write a line of verse.")

    ask(caller, "A trip to Lisbon")

    assert write_titles() == "Lisbon in verse"
    (request,) = spy.requests
    assert (request.model, request.instructions) == ("title", "Write a line of verse.")
    assert "<user>\nA trip to Lisbon\n</user>" in request.prompt


def test_a_title_without_its_own_is_written_by_the_model_of_the_agent(caller, spy):
    spy.answers["agent"] = "Certainly"
    AgentFactory(
        id="concierge", model={"provider": "spy", "name": "agent"}, memory={"options": {"generateTitle": True}}
    )

    ask(caller, "A trip to Lisbon")

    assert write_titles() == "Certainly"
    assert "Write a title for this conversation" in spy.requests[-1].instructions


@pytest.mark.parametrize(
    ("text", "title"),
    [("\n# **Lisbon** \nmore", "Lisbon"), ('"Porto"', "Porto"), ("é" * 100, "é" * 79 + "…"), (" \n", "")],
)
def test_a_title_is_one_line_of_at_most_eighty_characters(text, title):
    assert clean_title(text) == title
