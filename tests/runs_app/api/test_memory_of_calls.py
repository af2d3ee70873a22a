"""The memory of an agent with options, and calls that narrow it."""

import pytest

from memory_app.models import Message, Resource, Thread
from tests.api_client import Caller
from tests.factories import AgentFactory, api_key, member
from tests.runs import DEMO

pytestmark = pytest.mark.usefixtures("idle_engine")

GENERATE = "/api/agents/concierge/generate"


@pytest.fixture
def caller():
    return Caller(api_key(member("editor")))


def remember(**options):
    AgentFactory(id="concierge", model=DEMO, memory={"options": options})


def ask(caller, text, **memory):
    answer = caller.post(GENERATE, {"messages": text, "memory": {"thread": "t", **memory}})
    assert answer.status_code == 200, answer.body
    return answer.body


def test_the_options_limit_what_is_remembered(caller):
    remember(lastMessages=2)
    for text in ("I am Alice.", "My colour is blue."):
        ask(caller, text)

    answer = ask(caller, "What did I say?")["text"]

    assert "My colour is blue." in answer
    assert "Alice" not in answer


@pytest.mark.parametrize("options", [{"lastMessages": False}, {"messageHistory": {"maxTokens": 3}}])
def test_nothing_is_remembered_without_messages_or_tokens(caller, options):
    remember(**options)
    ask(caller, "I am Alice, and this is a long sentence.")

    assert "Before that" not in ask(caller, "Who am I?")["text"]


def test_a_read_only_memory_stores_no_messages(caller):
    remember(readOnly=True)

    ask(caller, "I am Alice.")

    assert not Message.objects.exists()


def test_a_call_can_only_narrow(caller):
    remember(lastMessages=4)
    ask(caller, "I am Alice.")

    forgetful = ask(caller, "Who am I?", options={"lastMessages": 0, "readOnly": True})
    widening = {"lastMessages": 500, "readOnly": False, "semanticRecall": True, "workingMemory": 0}
    wide = ask(caller, "Who am I?", options=widening)

    assert "Before that" not in forgetful["text"]
    assert "Before that: I am Alice." in wide["text"]
    assert {warning["field"] for warning in wide["warnings"]} == {
        "memory.options.lastMessages",
        "memory.options.semanticRecall",
        "memory.options.workingMemory",
    }
    assert "allows 4 messages" in str(wide["warnings"])
    assert Message.objects.count() == 4


@pytest.mark.parametrize("switched_off", [False, {"enabled": False}])
def test_a_call_can_switch_the_working_memory_off(caller, switched_off):
    remember(workingMemory=True)
    text = 'Use updateWorkingMemory {"memory": "Alice"}'

    answer = ask(caller, text, options={"workingMemory": switched_off})

    assert Resource.objects.get().working_memory is None
    assert answer["warnings"] == []


def test_a_part_that_no_agent_switches_off_so_is_a_warning(caller):
    remember(semanticRecall=True)

    answer = ask(caller, "Hello", options={"semanticRecall": {"enabled": False}, "workingMemory": {"enabled": True}})

    fields = [warning["field"] for warning in answer["warnings"]]
    assert fields == ["memory.options.semanticRecall", "memory.options.workingMemory"]


@pytest.mark.parametrize("form", [{"readOnly": False}, {"options": {"readOnly": False}}])
def test_a_call_cannot_write_into_a_memory_that_is_only_read(caller, form):
    remember(readOnly=True)

    answer = ask(caller, "I am Alice.", **form)

    assert not Message.objects.exists()
    assert [warning["field"] for warning in answer["warnings"]] == ["memory.options.readOnly"]


def test_options_that_fit_the_memory_are_no_warning(caller):
    remember(lastMessages=4)

    answer = ask(caller, "Hello", options={"lastMessages": 4, "readOnly": False, "workingMemory": False})

    assert answer["warnings"] == []


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"messageHistory": {"maxTokens": 5}}, "Send fewer lastMessages."),
        ({"messageHistory": False}, "Send fewer lastMessages."),
        ({"lastMesages": 1}, "Did you mean lastMessages?"),
    ],
)
def test_options_that_nothing_reads_are_a_warning_and_an_error_of_strict_requests(caller, options, message):
    remember()
    body = {"messages": "Hello", "memory": {"thread": "t", "options": options}}

    warnings = caller.post(GENERATE, body).body["warnings"]
    strict = caller.post(f"{GENERATE}?strict=true", body)

    assert [warning["field"] for warning in warnings] == [f"memory.options.{next(iter(options))}"]
    assert message in warnings[0]["message"]
    assert (strict.status_code, [issue["field"] for issue in strict.body["issues"]]) == (400, [warnings[0]["field"]])


@pytest.mark.parametrize(
    ("memory", "field"),
    [
        ({"options": 7}, "memory.options"),
        ({"options": {"lastMessages": "all"}}, "memory.options.lastMessages"),
        ({"options": {"readOnly": "yes"}}, "memory.options.readOnly"),
        ({"readOnly": 1}, "memory.readOnly"),
        ({"options": {"readOnly": 0}}, "memory.options.readOnly"),
        ({"thread": {"title": "Trip"}}, "memory.thread.id"),
        ({"thread": {"id": "t", "title": 7}}, "memory.thread.title"),
        ({"thread": {"id": "t", "metadata": []}}, "memory.thread.metadata"),
    ],
)
def test_an_invalid_member_is_refused_with_its_path(caller, memory, field):
    remember()

    answer = caller.post(GENERATE, {"messages": "Hello", "memory": {"thread": "t", **memory}})

    assert (answer.status_code, [issue["field"] for issue in answer.body["issues"]]) == (400, [field])
    assert not Thread.objects.exists()


def test_a_new_thread_gets_the_title_and_metadata_of_its_first_call(caller):
    remember()

    ask(caller, "Hello", thread={"id": "trip", "title": "Lisbon", "metadata": {"a": 1}})
    ask(caller, "Hello", thread={"id": "trip", "title": "Porto"})

    assert [*Thread.objects.values_list("key", "title", "metadata")] == [("trip", "Lisbon", {"a": 1})]
