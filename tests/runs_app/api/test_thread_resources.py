"""Threads belong to the resource for which they were created, such as an end user of a service."""

import pytest

from memory_app.models import Resource, Thread
from runs_app.models import AgentRun
from tests.api_client import Caller
from tests.concurrently import run_concurrently
from tests.factories import AgentFactory, api_key, member
from tests.runs import DEMO

pytestmark = pytest.mark.usefixtures("idle_engine")

GENERATE = "/api/agents/concierge/generate"
ALICE = {"memory": {"thread": "t", "resource": "alice"}}


@pytest.fixture
def caller():
    AgentFactory(id="concierge", model=DEMO, memory="last-messages")
    return Caller(api_key(member("editor")))


def ask(caller, text, path=GENERATE, **body):
    return caller.post(path, {"messages": text, **body})


SAME = [
    ALICE,
    {"memory": {"thread": {"id": "t"}, "resource": "alice"}},
    {"memory": {"thread": {"id": "t", "resourceId": "alice"}}},
    {"memory": {"thread": "t"}, "resourceId": "alice"},
    {"memory": {"resource": "alice"}, "threadId": "t"},
    {"threadId": "t", "resourceId": "alice"},
]
OTHERS = [
    {"memory": {"thread": "t", "resource": "bob"}},
    {"memory": {"thread": {"id": "t"}, "resource": "bob"}},
    {"memory": {"thread": {"id": "t", "resourceId": "bob"}}},
    {"memory": {"thread": "t"}, "resourceId": "bob"},
    {"threadId": "t", "resourceId": "bob"},
    {"memory": {"thread": "t", "resource": "Alice"}},
    {"memory": {"thread": "t"}},
    {"threadId": "t"},
]


@pytest.mark.parametrize("memory", SAME, ids=str)
def test_the_same_resource_continues_its_thread(caller, memory):
    ask(caller, "I am Alice.", **ALICE)

    answer = ask(caller, "Who am I?", **memory)

    assert "Before that: I am Alice." in answer.body["text"]


@pytest.mark.parametrize("memory", OTHERS, ids=str)
def test_the_thread_of_another_resource_is_refused(caller, memory):
    ask(caller, "I am Alice.", **ALICE)

    answer = ask(caller, "Who am I?", **memory)
    streamed = ask(caller, "Who am I?", "/api/agents/concierge/stream", **memory)

    for refused in (answer, streamed):
        assert (refused.status_code, refused.body["code"]) == (403, "other_resource")
        assert "Alice" not in str(refused.body)
    assert AgentRun.objects.count() == Thread.objects.count() == 1


def test_a_thread_without_a_resource_is_refused_with_one(caller):
    ask(caller, "I am Alice.", memory={"thread": "t"})

    assert ask(caller, "Who am I?", memory={"thread": "t", "resource": "bob"}).status_code == 403
    assert "I am Alice." in ask(caller, "Who am I?", memory={"thread": "t"}).body["text"]


WORKING = {"options": {"workingMemory": {"template": "# Person"}}}
NOTE = 'updateWorkingMemory {"memory": "Ann likes tea"}'


def test_a_run_without_names_has_the_memory_of_its_caller(caller):
    AgentFactory(id="noter", model=DEMO, memory=WORKING)
    path = "/api/agents/noter/generate"

    ask(caller, NOTE, path)
    ask(caller, "Hello", path, memory={"thread": "t"})
    stranger = Caller(api_key(member("editor")))
    ask(stranger, "Hello", path)

    first, second, third = AgentRun.objects.order_by("pk").select_related("resource", "thread")
    assert first.thread is None
    assert first.resource == second.thread.resource
    assert first.resource.key == first.resource.realm == f"u{first.requested_by_id}"
    assert first.resource.working_memory == "Ann likes tea"
    assert second.remembered["workingMemory"]["revision"] == 1
    assert third.remembered["workingMemory"]["revision"] == 0


def test_a_run_without_names_of_a_key_for_many_resources_has_no_memory():
    AgentFactory(id="noter", model=DEMO, memory=WORKING)
    service = Caller(api_key(member("editor"), realm_owner=""))

    answer = ask(service, NOTE, "/api/agents/noter/generate")

    assert answer.status_code == 200
    assert AgentRun.objects.get().resource is None
    assert not Resource.objects.exists()


def test_a_run_of_an_agent_without_memory_has_no_resource(caller):
    AgentFactory(id="plain", model=DEMO)

    ask(caller, "Hello", "/api/agents/plain/generate")

    assert AgentRun.objects.get().resource is None


@pytest.mark.parametrize(
    ("memory", "field"),
    [
        ({"memory": {"thread": "t", "resource": "alice"}, "resourceId": "bob"}, "resourceId"),
        ({"memory": {"thread": "t"}, "threadId": "u"}, "threadId"),
        (
            {"memory": {"thread": {"id": "t", "resourceId": "bob"}, "resource": "alice"}},
            "memory.thread.resourceId",
        ),
        ({"threadId": "t", "resourceId": 7}, "resourceId"),
    ],
)
def test_contradicting_resources_are_refused(caller, memory, field):
    answer = ask(caller, "Hello", **memory)

    assert answer.status_code == 400
    assert [issue["field"] for issue in answer.body["issues"]] == [field]
    assert AgentRun.objects.count() == 0


def test_a_repeat_with_an_idempotency_key_answers_the_first_answer(caller):
    body = {"messages": "I am Alice.", **ALICE}

    answers = [caller.post(GENERATE, body, Idempotency_Key="a").body["runId"] for _ in range(2)]
    other = caller.post(GENERATE, {**body, "memory": {"thread": "t", "resource": "bob"}}, Idempotency_Key="a")
    new = caller.post(GENERATE, {**body, "memory": {"thread": "t", "resource": "bob"}}, Idempotency_Key="b")

    assert answers[0] == answers[1]
    assert (other.status_code, new.status_code) == (422, 403)


def test_the_first_of_concurrent_resources_gets_the_thread(caller):
    def ask_as(resource):
        return ask(caller, f"I am {resource}.", memory={"thread": "t", "resource": resource}).status_code

    statuses = run_concurrently([lambda name=name: ask_as(name) for name in ("alice", "bob", "carol")])

    assert sorted(statuses) == [200, 403, 403]
    assert Thread.objects.count() == 1


@pytest.mark.parametrize("key", ["a/b", "line\nbreak", "", "x" * 257, 7])
def test_a_key_that_no_path_can_have_is_refused(caller, key):
    answer = ask(caller, "Hello", memory={"thread": key})

    assert (answer.status_code, answer.body["issues"][0]["field"]) == (400, "memory.thread")
    assert not Thread.objects.exists()


@pytest.mark.parametrize("key", ["line\nbreak", " ", "x" * 257, 7])
def test_a_resource_that_cannot_be_printed_is_refused(caller, key):
    answer = ask(caller, "Hello", memory={"thread": "t", "resource": key})

    assert (answer.status_code, answer.body["issues"][0]["field"]) == (400, "memory.resource")
