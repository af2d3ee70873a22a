"""Threads that agents share, and runs that continue them."""

import pytest

from memory_app.models import Message, Thread
from runs_app.engine import run_ends
from runs_app.engine.start.memory import ThreadActive
from runs_app.models import AgentRun
from tests.api_client import Caller
from tests.concurrently import run_concurrently
from tests.factories import AgentFactory, api_key, member
from tests.runs import DEMO, LONG, SLOW, start_run, wait_for_end

pytestmark = pytest.mark.usefixtures("idle_engine")

MEMORY = {"memory": {"thread": "t", "resource": "alice"}}


@pytest.fixture
def editor():
    return member("editor")


@pytest.fixture
def caller(editor):
    for agent_id in ("first", "second"):
        AgentFactory(id=agent_id, model=DEMO, memory="last-messages")
    return Caller(api_key(editor))


def ask(caller, agent_id, messages, **body):
    return caller.post(f"/api/agents/{agent_id}/generate", {"messages": messages, **body})


def texts():
    return [*Message.objects.values_list("text", flat=True)]


def test_agents_share_the_thread_of_a_resource_by_its_id(caller, editor):
    ask(caller, "first", "I am Alice.", **MEMORY)

    answer = ask(caller, "second", "Who am I?", **MEMORY)

    assert "Before that: I am Alice." in answer.body["text"]
    assert Thread.objects.get().last_number == 4
    rows = Message.objects.values_list("role", "number", "head_number", "author", "author_name")
    assert [*rows[:2]] == [("user", 1, 1, editor.pk, editor.username), ("assistant", 2, 2, None, "")]


def test_a_conversation_that_is_sent_with_its_thread_is_not_doubled(caller):
    first = ask(caller, "first", "One", **MEMORY).body["text"]
    conversation = [
        {"role": "user", "content": "One"},
        {"role": "assistant", "content": first},
        {"role": "user", "content": "Two"},
    ]

    second = ask(caller, "first", conversation, **MEMORY)

    assert second.body["text"].count("One") == 1
    assert len(texts()) == 4


def test_messages_are_recognized_by_their_ids(caller):
    ask(caller, "first", [{"id": "m1", "role": "user", "content": "One"}], **MEMORY)
    edited = [{"id": "m1", "role": "user", "content": "One!"}, {"id": "m2", "role": "user", "content": "Two"}]

    second = ask(caller, "first", edited, **MEMORY)

    assert "One!" not in second.body["text"]
    assert [*Message.objects.filter(role="user").values_list("key", "text")] == [("m1", "One"), ("m2", "Two")]


def test_one_of_two_runs_of_a_thread_begins(editor):
    agent = AgentFactory(model=SLOW, memory="last-messages")

    def begin():
        try:
            return start_run(agent, editor, LONG, thread="t")
        except ThreadActive as error:
            return error

    results = run_concurrently([begin, begin])

    run = AgentRun.objects.get()
    (refused,) = (result for result in results if isinstance(result, ThreadActive))
    assert (refused.status, refused.code) == (409, "thread_active")
    assert str(run.pk) in refused.error
    run_ends.cancel_run(run.pk)
    wait_for_end(run)
    assert wait_for_end(start_run(agent, editor, "Again", thread="t", options={"maxSteps": 1}))
