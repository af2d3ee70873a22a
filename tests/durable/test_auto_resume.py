"""Messages that answer the tool that waits in their conversation, over each engine."""

import json

import pytest
from django.db import connections
from pydantic_ai.messages import ToolReturnPart
from pydantic_ai.models.function import DeltaToolCall, FunctionModel

from agents_app.registry import Entry, Kind, registry, tool
from runs_app.approvals import auto_resume
from runs_app.building import answer_reader
from runs_app.calling import current
from runs_app.models import AgentRun, PendingCall
from runs_app.providers import cached_providers
from tests.api_client import Caller
from tests.factories import AgentFactory, api_key, member

pytestmark = pytest.mark.usefixtures("idle_engine")

PATH = "/api/agents/clerk/generate"
MEMORY = {"thread": "t1", "resource": "ann"}
SCHEMA = {"type": "object", "properties": {"confirmed": {"type": "boolean"}}, "required": ["confirmed"]}


def listening_model(*arguments):
    """Return a model that calls the tool of its agent, and reads "Yes" as the answer to its question."""

    async def answer(messages, info):
        text = str(messages[-1].parts[-1].content)
        names = [tool.name for tool in info.output_tools]
        if "answer" in names:
            if "breaks" in text:
                raise RuntimeError("The model is away.")
            is_answer = "Yes" in text.partition("The user says:")[2]
            name, arguments = ("answer", {"confirmed": True}) if is_answer else ("no_answer", {})
            yield {0: DeltaToolCall(name, json.dumps(arguments), tool_call_id="read")}
        elif any(isinstance(part, ToolReturnPart) for part in messages[-1].parts):
            yield "Records deleted successfully"
        elif "elete" in text:
            yield {0: DeltaToolCall("delete-records", "{}", tool_call_id="delete")}
        else:
            yield "Why did the chicken cross the road?"

    return FunctionModel(stream_function=answer, model_name="listening")


@pytest.fixture
def clerk(transactional_db):
    registry.add(Entry(Kind.MODEL_PROVIDER, "listening", "Listening", target=listening_model))

    @tool("delete-records", resume_schema=SCHEMA)
    def delete_records() -> str:
        """Delete the old records."""
        if current().resume_data is None:
            return current().suspend({"question": "Please confirm: delete old records"})
        return "deleted"

    cached_providers.invalidate()
    model = {"provider": "listening", "name": "any"}
    return AgentFactory(id="clerk", model=model, tools=["delete-records"], memory="last-messages")


@pytest.fixture
def user():
    return member("editor")


@pytest.fixture
def editor(user, clerk):
    return Caller(api_key(user))


def say(caller, text, **more):
    body = {"messages": text, "memory": MEMORY, "autoResumeSuspendedTools": True, **more}
    answer = caller.post(PATH, body)
    assert answer.status_code == 200, answer.body
    return answer.body


@pytest.fixture
def waiting(editor):
    """Return the answer to "Delete the old records", whose run waits for a confirmation."""
    answer = say(editor, "Delete the old records")
    assert answer["finishReason"] == "suspended"
    assert answer["suspendPayload"]["suspendPayload"] == {"question": "Please confirm: delete old records"}
    return answer


def test_an_api_key_of_the_same_user_for_end_users_answers_no_question_of_the_user(editor, waiting, user):
    service = Caller(api_key(user, realm_owner=""))

    answer = say(service, "Yes, confirmed")

    assert answer["runId"] != waiting["runId"]
    assert PendingCall.objects.get().state == "open"


def test_unknown_names_of_the_message_that_confirms_are_warnings(editor, waiting):
    answer = say(editor, "Yes, confirmed", temprature=0.1)

    assert answer["runId"] == waiting["runId"]
    assert [warning["field"] for warning in answer["warnings"]] == ["temprature"]


def test_the_next_message_confirms(editor, waiting, user):
    answer = say(editor, "Yes, confirmed")

    call = PendingCall.objects.get()
    assert (answer["text"], answer["runId"]) == ("Records deleted successfully", waiting["runId"])
    assert (call.state, call.resume_data, call.via, call.decided_by) == (
        "resumed",
        {"confirmed": True},
        "message",
        user,
    )
    assert AgentRun.objects.count() == 1


@pytest.mark.postgres_only
def test_the_request_to_the_model_holds_no_database_connection(editor, waiting, monkeypatch):
    wrapper, open_connections = connections["default"], []

    async def read(*arguments):
        open_connections.append(wrapper.connection)

    monkeypatch.setattr(answer_reader, "read_reply", read)
    say(editor, "Yes, confirmed")

    assert open_connections == [None]


def test_a_repeated_answer_with_the_same_key_returns_the_same_run(editor, waiting):
    key = {"idempotency_key": "yes-1"}
    body = {"messages": "Yes", "memory": MEMORY, "autoResumeSuspendedTools": True}

    first, second = (editor.post(PATH, body, **key) for _ in range(2))

    assert [(answer.status_code, answer.body["runId"]) for answer in (first, second)] == [(200, waiting["runId"])] * 2
    assert first.body["text"] == second.body["text"] == "Records deleted successfully"
    assert AgentRun.objects.count() == 1
    other = editor.post(PATH, {**body, "messages": "Yes, all of them"}, **key)
    assert (other.status_code, other.body["code"]) == (422, "key_reused")


def test_a_repeated_message_that_was_no_answer_returns_its_own_run(editor, waiting):
    key = {"idempotency_key": "joke-1"}
    body = {"messages": "tell me a joke", "memory": MEMORY, "autoResumeSuspendedTools": True}

    first, second = (editor.post(PATH, body, **key) for _ in range(2))

    assert first.body["runId"] == second.body["runId"] != waiting["runId"]
    assert PendingCall.objects.get().is_open


def test_a_repeated_message_does_not_answer_the_question_of_its_own_run(editor, monkeypatch):
    body = {"messages": "Delete the old records", "memory": MEMORY, "autoResumeSuspendedTools": True}
    first = editor.post(PATH, body, idempotency_key="delete-1")
    monkeypatch.setattr(auto_resume, "ask_model", lambda *arguments: {"confirmed": True})

    second = editor.post(PATH, body, idempotency_key="delete-1")

    assert (second.status_code, second.body["runId"]) == (200, first.body["runId"])
    assert second.body["finishReason"] == "suspended"
    assert PendingCall.objects.get().is_open


def test_the_stream_of_the_answer_begins_with_the_call(editor, waiting):
    body = {"messages": "Yes", "memory": MEMORY, "autoResumeSuspendedTools": True}
    answer = editor.client.post("/api/agents/clerk/stream", body, content_type="application/json")

    blocks = b"".join(answer.streaming_content).decode().split("\n\n")
    kinds = [json.loads(block[6:])["type"] for block in blocks if block.startswith("data: {")]
    assert (kinds[:2], kinds[-1]) == (["tool-call", "tool-result"], "finish")


def test_a_run_that_waited_in_a_transferred_conversation_is_not_answered_by_its_new_resource(editor, waiting):
    assert editor.post("/api/memory/threads/t1/transfer", {"resourceId": "bob"}).status_code == 200

    answer = say(editor, "Yes, confirmed", memory={"thread": "t1", "resource": "bob"})

    assert answer["runId"] != waiting["runId"]
    assert PendingCall.objects.get().is_open


def test_another_subject_leaves_the_call_waiting(editor, waiting):
    answer = say(editor, "tell me a joke")

    assert (answer["text"], answer["runId"] != waiting["runId"]) == ("Why did the chicken cross the road?", True)
    assert PendingCall.objects.get().is_open


@pytest.mark.parametrize(
    "more",
    [
        {"memory": {"thread": "t2", "resource": "ann"}},
        {"autoResumeSuspendedTools": False},
        {"messages": "Yes, but it breaks"},
    ],
    ids=["another conversation", "switched off", "the model is away"],
)
def test_an_ordinary_run_starts_otherwise(editor, waiting, more):
    assert say(editor, "Yes", **more)["runId"] != waiting["runId"]
    assert PendingCall.objects.get().is_open


def test_another_user_and_several_waiting_runs_are_not_resumed(editor, waiting):
    assert say(Caller(api_key(member("publisher"))), "Yes")["runId"] != waiting["runId"]
    say(editor, "Delete the old records")
    assert PendingCall.objects.waiting().count() == 2

    assert say(editor, "Yes")["finishReason"] == "stop"
    assert PendingCall.objects.waiting().count() == 2


def test_a_call_that_waits_for_approval_is_never_resumed(editor):
    say(editor, "Delete the old records", requireToolApproval=True)

    assert say(editor, "Yes")["finishReason"] == "stop"
    assert PendingCall.objects.get().is_open


@pytest.mark.parametrize(
    ("message", "day"), [("On Wednesday, please", "Wednesday"), ("friday", "Friday"), ("tell me a joke", None)]
)
def test_the_demo_model_reads_the_choice_that_a_message_names(editor, clerk, message, day):
    demo = {"provider": "demo", "name": "echo", "delay": 0}
    clerk.edit({"model": demo, "tools": ["arrange-delivery"]})
    body = {"memory": MEMORY, "autoResumeSuspendedTools": True}
    waiting = editor.post(PATH, {**body, "messages": 'Use arrange-delivery {"order": "A-17"}'}).body

    answer = editor.post(PATH, {**body, "messages": message}).body

    assert (answer["runId"] == waiting["runId"]) == (day is not None)
    assert day is None or f"delivered on {day}" in answer["text"]
    assert AgentRun.objects.get(pk=waiting["runId"]).status == ("suspended" if day is None else "succeeded")
