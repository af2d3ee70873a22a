"""Routes that send signals and messages to threads, follow a thread, and stop its run."""

import json

import pytest
from django.contrib.auth.models import User
from django.urls import reverse
from django.utils import timezone

from access_app.models import ApiKey
from memory_app.history.signal_markup import NAME_MESSAGE
from memory_app.history.wire_messages import MAX_MESSAGE_KB
from memory_app.models import Message, Participant, Thread
from runs_app.events import thread_streams
from runs_app.events.streams import KEEP_ALIVE, StreamSlot, stream_slots
from runs_app.models import AgentRun
from tests.api_client import Caller
from tests.factories import AgentFactory, UserFactory, api_key, member
from tests.runs import DEMO, LONG, SLOW, wait_for_end, wait_for_text
from tests.runs_app.factories import RunFactory
from tests.served import wait_until

pytestmark = pytest.mark.usefixtures("idle_engine")

OWNER = "support"
TARGET = {"threadId": "t", "resourceId": "alice"}
AT = "/api/agents/concierge"
MESSAGES = "/api/memory/threads/t/messages?resourceId=alice"
BODIES = {
    "signals": {"signal": {"type": "notification", "contents": "Late"}, **TARGET},
    "send-message": {"message": "Hello", **TARGET},
    "queue-message": {"message": "Hello", **TARGET},
    "threads/subscribe": TARGET,
    "threads/abort": TARGET,
}


@pytest.fixture
def editor():
    return member("editor", OWNER)


@pytest.fixture
def agent():
    return AgentFactory(id="concierge", owner_id=OWNER, model=DEMO, memory="last-messages")


@pytest.fixture
def caller(editor, agent):
    return Caller(api_key(editor))


def finished(run_id):
    wait_until(lambda: AgentRun.objects.filter(pk=run_id).exists(), 30, "the run")
    return wait_for_end(AgentRun.objects.get(pk=run_id))


def test_a_message_creates_its_thread_and_wakes_a_run(caller, editor):
    body = {"message": [{"type": "text", "text": "Two"}, {"type": "text", "text": "rooms"}], **TARGET}

    sent = caller.post(f"{AT}/send-message", body)

    assert (sent.status_code, sent.body["accepted"]) == (200, True)
    assert sent.body["signal"]["contents"] == "Two\nrooms"
    assert "You said: Two\nrooms" in finished(sent.body["runId"]).output
    listed = caller.get(MESSAGES).body["messages"]
    assert (listed[0]["role"], listed[0]["content"]["parts"][0]["text"]) == ("user", "Two\nrooms")
    assert listed[0]["author"]["name"] == editor.username


@pytest.mark.parametrize(("route", "behavior", "status"), [("send-message", "wake", 429), ("signals", "discard", 200)])
def test_a_signal_that_is_not_stored_creates_no_thread(caller, settings, route, behavior, status):
    settings.RUNS_PER_USER = 0

    sent = caller.post(f"{AT}/{route}", {**BODIES[route], "ifIdle": {"behavior": behavior}})

    assert sent.status_code == status
    assert caller.get(MESSAGES).status_code == 404
    assert not Thread.objects.exists()


def test_a_signal_is_listed_with_its_type_and_attributes(caller):
    signal = {"id": "s1", "type": "reactive", "contents": "Late", "attributes": {"pr": 1}, "metadata": {"a": 1}}

    sent = caller.post(f"{AT}/signals", {"signal": signal, "ifIdle": {"behavior": "persist"}, **TARGET})
    again = caller.post(f"{AT}/signals", {"signal": signal, **TARGET})

    assert again.body == sent.body
    assert sent.body["runId"] == ""
    (message,) = caller.get(f"{MESSAGES}&includeSystemReminders=true").body["messages"]
    assert caller.get(MESSAGES).body["messages"] == []
    assert (message["id"], message["role"]) == ("s1", "signal")
    assert message["content"]["metadata"] == {
        "a": 1,
        "signal": {"type": "reactive", "tagName": "", "attributes": {"pr": 1}},
    }


def test_a_user_interface_gets_the_attributes_and_the_metadata_of_a_signal(caller):
    signal = {"type": "user", "contents": "Hi", "attributes": {"name": "Devin"}, "metadata": {"avatar": "d.png"}}
    caller.post(f"{AT}/signals", {"signal": signal, "ifIdle": {"behavior": "persist"}, **TARGET})
    caller.post("/api/memory/save-messages", {"messages": [{**TARGET, "role": "user", "content": "Plain"}]})

    signalled, plain = caller.get(MESSAGES).body["uiMessages"]

    assert signalled["content"] == "Hi"
    assert signalled["metadata"] == {
        "avatar": "d.png",
        "signal": {"type": "user", "tagName": "", "attributes": {"name": "Devin"}},
    }
    assert "metadata" not in plain


@pytest.mark.parametrize("situation", ["ifActive", "ifIdle"])
def test_attributes_of_a_situation_count_towards_the_size_of_a_signal(caller, situation):
    added = {"behavior": "persist", "attributes": {"note": "x" * MAX_MESSAGE_KB * 1024}}

    refused = caller.post(f"{AT}/signals", {**BODIES["signals"], situation: added})

    assert [issue["field"] for issue in refused.body["issues"]] == [f"{situation}.attributes"]


def test_metadata_is_measured_in_utf_8(caller):
    def send(length):
        signal = {"type": "reactive", "contents": "Late", "metadata": {"note": "й" * length}}
        return caller.post(f"{AT}/signals", {"signal": signal, "ifIdle": {"behavior": "persist"}, **TARGET})

    refused = send(8 * 1024)

    assert send(8 * 1024 - 20).status_code == 200
    assert [issue["field"] for issue in refused.body["issues"]] == ["signal.metadata"]


def test_options_and_attributes_of_the_situation_are_used(caller):
    idle = {
        "attributes": {"wakes": True},
        "streamOptions": {
            "maxSteps": 3,
            "memory": {"thread": "other"},
            "requestContext": {"mastra__resourceId": "bob"},
        },
    }

    sent = caller.post(f"{AT}/signals", {**BODIES["signals"], "ifIdle": idle})

    run = finished(sent.body["runId"])
    assert '<notification wakes="true">Late</notification>' in run.output
    assert (run.input["options"], run.request_context, run.thread.key) == ({"maxSteps": 3}, {}, "t")


def test_a_run_names_its_thread(caller):
    run = finished(caller.post(f"{AT}/send-message", BODIES["send-message"]).body["runId"])

    sent = caller.post(f"{AT}/signals", {"signal": {"type": "ping", "contents": ""}, "runId": str(run.pk)})

    assert "<ping />" in finished(sent.body["runId"]).output


@pytest.mark.parametrize(
    ("path", "body", "field"),
    [
        ("signals", {**TARGET}, "signal"),
        ("signals", {"signal": {"contents": "x"}, **TARGET}, "signal.type"),
        ("signals", {"signal": {"type": "a b", "contents": "x"}, **TARGET}, "signal.type"),
        ("signals", {"signal": {"type": "x", "tagName": "a b", "contents": "x"}, **TARGET}, "signal.tagName"),
        ("signals", {"signal": {"type": "x", "contents": 1}, **TARGET}, "signal.contents"),
        (
            "signals",
            {"signal": {"type": "x", "contents": "", "attributes": {"a": {}}}, **TARGET},
            "signal.attributes.a",
        ),
        ("signals", {"signal": {"type": "x", "contents": "", "id": 7}, **TARGET}, "signal.id"),
        ("signals", {**BODIES["signals"], "ifIdle": {"behavior": "sleep"}}, "ifIdle.behavior"),
        ("signals", {**BODIES["signals"], "ifActive": {"behavior": "queue"}}, "ifActive.behavior"),
        ("signals", {**BODIES["signals"], "ifActive": []}, "ifActive"),
        (
            "signals",
            {**BODIES["signals"], "ifIdle": {"streamOptions": {"maxSteps": "x"}}},
            "ifIdle.streamOptions.maxSteps",
        ),
        ("signals", {"signal": {"type": "x", "contents": ""}}, "threadId"),
        ("signals", {**BODIES["signals"], "threadId": "a/b"}, "threadId"),
        ("send-message", {"message": "  ", **TARGET}, "message.contents"),
        ("send-message", {"message": {"contents": [{"type": "file", "data": "x"}]}, **TARGET}, "message.contents[0]"),
        ("send-message", {"message": "a\0b", **TARGET}, "message"),
        ("threads/abort", {"threadId": 7}, "threadId"),
    ],
)
def test_bad_bodies_are_refused_with_the_path_and_store_nothing(caller, path, body, field):
    refused = caller.post(f"{AT}/{path}", body)

    assert refused.status_code == 400
    assert [issue["field"] for issue in refused.body["issues"]] == [field]
    assert not Message.objects.exists()
    assert not AgentRun.objects.exists()


def test_all_faults_of_a_signal_are_reported_at_once(caller):
    signal = {"type": "a b", "contents": "x", "attributes": {"1x": "y"}}

    refused = caller.post(f"{AT}/signals", {"signal": signal, **TARGET})

    assert {issue["field"] for issue in refused.body["issues"]} == {"signal.type", "signal.attributes.1x"}


@pytest.mark.parametrize("name", [None, 7, "", "x" * 101])
def test_the_type_of_a_signal_has_one_limit_which_its_error_names(caller, name):
    refused = caller.post(f"{AT}/signals", {"signal": {"type": name, "contents": "x"}, **TARGET})

    (issue,) = refused.body["issues"]
    assert (issue["field"], issue["message"]) == ("signal.type", NAME_MESSAGE)
    assert "1 to 100 letters" in NAME_MESSAGE


STRANGERS = {
    "stranger": (lambda editor: api_key(member("editor", "sales")), 404),
    "viewer": (lambda editor: api_key(member("viewer", OWNER)), 403),
    "cut key": (lambda editor: api_key(editor, "viewer"), 403),
    "bound key": (lambda editor: api_key(editor, resource="bob"), 403),
}


@pytest.mark.parametrize("path", BODIES)
@pytest.mark.parametrize("kind", STRANGERS)
def test_strangers_reach_no_thread(caller, editor, kind, path):
    caller.post("/api/memory/threads?agentId=concierge", TARGET)
    thread = Thread.objects.get()
    make_key, status = STRANGERS[kind]

    refused = Caller(make_key(editor)).client.post(f"{AT}/{path}", BODIES[path], content_type="application/json")
    refused.close()

    if path == "threads/subscribe" and kind in ("viewer", "cut key"):
        status = 404 if kind == "viewer" else 200  # a thread of another realm; a key that may read
    assert refused.status_code == status
    assert not thread.messages.exists()
    assert not AgentRun.objects.exists()


def test_the_thread_of_another_realm_is_not_touched(caller, agent):
    caller.post("/api/memory/threads?agentId=concierge", TARGET)
    other = Caller(api_key(member("editor", OWNER)))

    assert other.post(f"{AT}/threads/subscribe", TARGET).status_code == 404
    assert other.post(f"{AT}/threads/abort", TARGET).status_code == 404
    finished(other.post(f"{AT}/send-message", BODIES["send-message"]).body["runId"])

    assert Thread.objects.count() == 2
    assert not Thread.objects.first().messages.exists() or not Thread.objects.last().messages.exists()


def test_aborting_stops_the_expected_run_only(caller, agent):
    agent.edit({"model": SLOW})
    run_id = caller.post(f"{AT}/send-message", {"message": LONG, **TARGET}).body["runId"]
    wait_for_text(AgentRun.objects.get(pk=run_id))

    other = caller.post(f"{AT}/threads/abort", {**TARGET, "expectedRunId": "0"})
    assert other.body == {"aborted": False}
    assert caller.post(f"{AT}/threads/abort", {**TARGET, "expectedRunId": run_id}).body == {"aborted": True}

    assert finished(run_id).status == "cancelled"
    assert caller.post(f"{AT}/threads/abort", TARGET).body == {"aborted": False}


def test_a_waiting_run_is_stopped_beside_a_later_one(caller, agent):
    agent.edit({"tools": ["calculator"]})
    text = 'calculator {"expression": "1 + 1"}'
    waiting = caller.post(f"{AT}/send-message", {"message": text, **TARGET, **APPROVAL}).body["runId"]
    wait_until(lambda: is_waiting(AgentRun.objects.get(pk=waiting)), 30, "the waiting call")
    agent.edit({"model": SLOW})
    later = caller.post(f"{AT}/send-message", {"message": LONG, **TARGET}).body["runId"]
    wait_for_text(AgentRun.objects.get(pk=later))

    assert caller.post(f"{AT}/threads/abort", {**TARGET, "expectedRunId": waiting}).body == {"aborted": True}

    assert finished(waiting).status == "cancelled"
    assert not AgentRun.objects.get(pk=later).is_finished
    caller.post(f"{AT}/threads/abort", TARGET)


def test_an_active_thread_says_the_way_out(caller, agent):
    agent.edit({"model": SLOW})
    caller.post(f"{AT}/send-message", {"message": LONG, **TARGET})

    refused = caller.post(f"{AT}/generate", {"messages": "Hello", "memory": {"thread": "t", "resource": "alice"}})

    assert (refused.status_code, refused.body["code"]) == (409, "thread_active")
    assert "send-message" in refused.body["error"]
    assert "queue-message" in refused.body["error"]


def subscribe(caller, body):
    return caller.client.post(f"{AT}/threads/subscribe", body, content_type="application/json")


def chunks_of(block):
    lines = [line for line in block.decode().split("\n\n") if line.startswith("data: ")]
    return [json.loads(line.removeprefix("data: ")) for line in lines]


def read_stream(stream, is_enough):
    """Return the chunks of a stream until there are enough."""
    chunks = []
    for block in stream.streaming_content:
        chunks += chunks_of(block)
        if is_enough(chunks):
            break
    stream.close()
    return chunks


def read_until(kind, blocks):
    """Return the chunks of a stream until one of this type, or until nothing comes any more."""
    chunks = []
    for block in blocks:
        chunks += chunks_of(block)
        if block == KEEP_ALIVE or chunks[-1]["type"] == kind:
            break
    return chunks


def test_a_subscriber_gets_all_runs_and_the_signals_between(caller):
    caller.post("/api/memory/threads?agentId=concierge", TARGET)
    stream = subscribe(caller, TARGET)

    run_ids = []
    for text in ("one", "two"):
        sent = caller.post(f"{AT}/send-message", {"message": text, **TARGET})
        run_ids.append(sent.body["runId"])
        finished(sent.body["runId"])
    caller.post(f"{AT}/signals", {**BODIES["signals"], "ifIdle": {"behavior": "persist"}})

    chunks = read_stream(stream, lambda chunks: sum(chunk["type"] == "finish" for chunk in chunks) == 2)
    kinds = [chunk["type"] for chunk in chunks]
    assert [chunk["runId"] for chunk in chunks if chunk["type"] == "finish"] == run_ids
    assert [chunk["data"]["contents"] for chunk in chunks if chunk["type"].startswith("data-")] == [
        "one",
        "two",
        "Late",
    ]
    assert kinds.count("data-user-message") == 2


def test_a_subscriber_gets_what_follows_a_decision(caller, agent):
    agent.edit({"tools": ["calculator"]})
    caller.post("/api/memory/threads?agentId=concierge", TARGET)
    stream = subscribe(caller, TARGET)
    text = 'calculator {"expression": "20 + 22"}'
    run_id = caller.post(f"{AT}/send-message", {"message": text, **TARGET, **APPROVAL}).body["runId"]
    wait_until(lambda: is_waiting(AgentRun.objects.get(pk=run_id)), 30, "the waiting call")
    blocks = iter(stream.streaming_content)
    next(blocks)
    chunks = read_until("suspended", blocks)

    assert caller.post(f"{AT}/approve-tool-call-generate", {"runId": run_id}).status_code == 200
    chunks += read_until("finish", blocks)

    stream.close()
    assert {chunk["runId"] for chunk in chunks if chunk["from"] == "AGENT"} == {run_id}
    (result,) = [chunk["payload"]["result"] for chunk in chunks if chunk["type"] == "tool-result"]
    assert "42" in str(result)
    kinds = [chunk["type"] for chunk in chunks]
    assert (kinds.count("suspended"), kinds.count("tool-call"), kinds.count("finish")) == (1, 1, 1)


def test_a_participant_follows_the_answers_only(caller, editor, agent):
    caller.post("/api/memory/threads?agentId=concierge", TARGET)
    colleague = member("editor", OWNER)
    Participant.objects.create(thread=Thread.objects.get(), user=colleague, name="Bo")
    stream = subscribe(Caller(api_key(colleague)), {"threadId": "t"})

    finished(caller.post(f"{AT}/send-message", BODIES["send-message"]).body["runId"])

    chunks = read_stream(stream, lambda chunks: any(chunk["type"] == "finish" for chunk in chunks))
    assert "You said" in "".join(chunk["payload"].get("text", "") for chunk in chunks if "payload" in chunk)


def test_the_stream_of_a_removed_participant_ends_before_what_comes_next(caller, editor, agent):
    caller.post("/api/memory/threads?agentId=concierge", TARGET)
    participant = Participant.objects.create(thread=Thread.objects.get(), user=member("viewer", OWNER), name="Bo")
    stream = subscribe(Caller(api_key(participant.user)), {"threadId": "t"})

    participant.delete()
    caller.post(f"{AT}/signals", {**BODIES["signals"], "ifIdle": {"behavior": "persist"}})

    assert b"Late" not in b"".join(stream.streaming_content)


def test_the_stream_of_a_key_for_end_users_sends_what_comes_next(caller, editor, agent):
    served, sender = (Caller(api_key(member("editor", OWNER), realm_owner=OWNER)) for _ in range(2))
    served.post("/api/memory/threads?agentId=concierge", TARGET)
    stream = subscribe(served, TARGET)

    sender.post(f"{AT}/signals", {**BODIES["signals"], "ifIdle": {"behavior": "persist"}})

    assert any(b"Late" in block for block in stream.streaming_content)
    stream.close()


@pytest.mark.parametrize("loss", ["membership", "role", "key", "role of the key", "account"])
def test_the_stream_of_a_caller_without_access_ends_before_what_comes_next(loss, caller, editor, agent):
    service = member("editor", OWNER)
    key, token = ApiKey.objects.issue(service, realm_owner=OWNER)
    served = Caller(token)
    served.post("/api/memory/threads?agentId=concierge", TARGET)
    sender = Caller(api_key(member("editor", OWNER), realm_owner=OWNER))
    stream = subscribe(served, TARGET)

    if loss == "membership":
        service.memberships.all().delete()
    elif loss == "role":
        service.memberships.update(role="viewer")
    elif loss == "key":
        key.revoke()
    elif loss == "role of the key":
        ApiKey.objects.filter(pk=key.pk).update(role="viewer")
    else:
        User.objects.filter(pk=service.pk).update(is_active=False)
    sent = sender.post(f"{AT}/signals", {**BODIES["signals"], "ifIdle": {"behavior": "persist"}})

    assert sent.status_code == 200
    assert b"Late" not in b"".join(stream.streaming_content)


def test_who_loses_access_before_the_stream_begins_occupies_no_place(caller, editor, agent, monkeypatch):
    service = member("editor", OWNER)
    served = Caller(api_key(service, realm_owner=OWNER))
    served.post("/api/memory/threads?agentId=concierge", TARGET)

    def leave_and_open(user):
        service.memberships.all().delete()
        return StreamSlot(user)

    monkeypatch.setattr(thread_streams.streams, "StreamSlot", leave_and_open)
    before = stream_slots.count_by_user.copy()

    subscribe(served, TARGET).close()

    assert stream_slots.count_by_user == before


def test_a_quiet_stream_sends_heartbeats_and_ends_for_a_removed_participant(caller, editor, agent, monkeypatch):
    assert thread_streams.THREAD_HEARTBEAT == 25
    monkeypatch.setattr(thread_streams, "THREAD_HEARTBEAT", 0.05)
    monkeypatch.setattr(thread_streams.streams, "EVENT_POLL_INTERVAL", 0.01)
    caller.post("/api/memory/threads?agentId=concierge", TARGET)
    participant = Participant.objects.create(thread=Thread.objects.get(), user=member("viewer", OWNER), name="Bo")
    blocks = iter(subscribe(Caller(api_key(participant.user)), {"threadId": "t"}).streaming_content)

    quiet = [next(blocks) for _ in range(3)]
    participant.delete()

    assert quiet == [KEEP_ALIVE] * 3
    assert len([*blocks]) <= 1  # the stream ends; one heartbeat may have been on its way


@pytest.mark.parametrize("is_suspended", [False, True])
def test_the_deletion_of_a_thread_stops_its_run(caller, agent, is_suspended):
    agent.edit({"model": DEMO if is_suspended else SLOW, "tools": ["calculator"]})
    text = 'calculator {"expression": "1 + 1"}' if is_suspended else LONG
    sent = caller.post(f"{AT}/send-message", {"message": text, **TARGET, **APPROVAL})
    run = AgentRun.objects.get(pk=sent.body["runId"])
    wait_until(lambda: is_waiting(run) if is_suspended else wait_for_text(run), 30, "the run")

    deleted = caller.delete("/api/memory/threads/t?resourceId=alice")

    assert (deleted.status_code, deleted.body) == (200, {"result": "Thread deleted"})
    assert wait_for_end(run).status == "cancelled"
    assert run.thread is None
    assert not Message.objects.exists()


APPROVAL = {"ifIdle": {"behavior": "wake", "streamOptions": {"requireToolApproval": True}}}


def is_waiting(run):
    run.refresh_from_db()
    return run.status == "suspended"


def test_the_page_of_a_thread_stops_its_run_too(client, caller, agent, editor):
    agent.edit({"model": SLOW})
    sent = caller.post(f"{AT}/send-message", {"message": LONG, **TARGET})
    run = wait_for_text(AgentRun.objects.get(pk=sent.body["runId"]))
    client.force_login(editor)

    assert client.post(reverse("threads:delete", args=["t"])).status_code == 302

    assert wait_for_end(run).status == "cancelled"
    assert not Thread.objects.exists()


def test_a_former_user_has_no_thread(agent):
    assert Caller(api_key(UserFactory())).post(f"{AT}/threads/subscribe", TARGET).status_code == 404


def test_abort_stops_the_run_that_works_and_not_a_later_one_that_waits_for_a_person(caller, editor, agent):
    caller.post(f"{AT}/send-message", {"message": "Hello", **TARGET, "ifIdle": {"behavior": "persist"}})
    columns = {"agent": agent, "requested_by": editor, "thread": Thread.objects.get(), "chunks": []}
    working = RunFactory(open=True, **columns)
    waiting = RunFactory(suspended=True, created_at=timezone.now(), **columns)

    answer = caller.post(f"{AT}/threads/abort", TARGET)

    assert answer.body == {"aborted": True}
    requested = AgentRun.objects.filter(cancel_requested_at__isnull=False)
    assert [*requested.values_list("pk", flat=True)] == [working.pk]
    waiting.refresh_from_db()
    assert waiting.status == "suspended"
    AgentRun.objects.unfinished().delete()


def test_misspelled_names_of_a_signal_are_warnings(caller):
    options = {"maxStep": 1, "modelSettings": {"topp": 1}}
    body = {
        "signal": {"type": "notification", "contents": "Late", "atributes": {}},
        "ifActve": {"behavior": "persist"},
        "ifIdle": {"behaviour": "persist", "behavior": "persist", "streamOptions": options},
        **TARGET,
    }

    sent = caller.post(f"{AT}/signals?status=draft&agentId=concierge", body)

    assert sent.status_code == 200
    unknown = {item["field"]: item["message"] for item in sent.body["warnings"]}
    assert {field: message.removeprefix("This name is unknown. ") for field, message in unknown.items()} == {
        "ifActve": "Did you mean ifActive?",
        "signal.atributes": "Did you mean attributes?",
        "ifIdle.behaviour": "Did you mean behavior?",
        "ifIdle.streamOptions.maxStep": "Did you mean maxSteps?",
        "ifIdle.streamOptions.modelSettings.topp": "Did you mean topP?",
    }


@pytest.mark.parametrize("route", BODIES)
def test_strict_sends_nothing_to_a_thread(caller, route):
    caller.post("/api/memory/threads", TARGET)

    refused = caller.post(f"{AT}/{route}?strict=true", {**BODIES[route], "resorceId": "bob"})

    assert (refused.status_code, [issue["field"] for issue in refused.body["issues"]]) == (400, ["resorceId"])
    assert not Message.objects.exists()
