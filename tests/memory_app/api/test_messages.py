"""Routes of messages."""

import json
from datetime import UTC, datetime
from urllib.parse import quote
from uuid import uuid4

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from agentcms.api import pagination
from agentcms.wire.timestamps import format_timestamp
from memory_app.history import messages
from memory_app.history.messages import Author
from memory_app.history.signal_markup import Signal
from memory_app.history.thread_signals import append_signal
from memory_app.models import Message
from memory_app.views import threads
from tests.memory_app.conftest import add_thread

pytestmark = pytest.mark.django_db

PATH = "/api/memory/threads/t/messages"
SAVE = "/api/memory/save-messages"
CALL = {"state": "result", "toolCallId": "c1", "toolName": "add", "args": {"a": 1}, "result": 3}


def message(text="Hello", role="user", **fields):
    return {"threadId": "t", "resourceId": "alice", "role": role, "content": text, **fields}


def texts(answer):
    return [item["content"]["content"] for item in answer.body["messages"]]


@pytest.fixture
def thread(editor, agent):
    return add_thread(editor, texts=[("user", f"Message {number}") for number in range(5)])


def test_pages_are_the_newest_with_the_oldest_first(caller, thread):
    ascending = quote(json.dumps({"field": "createdAt", "direction": "ASC"}))

    page = caller.get(f"{PATH}?perPage=2")

    assert texts(page) == ["Message 3", "Message 4"]
    assert (page.body["total"], page.body["hasMore"]) == (5, True)
    assert [item["content"] for item in page.body["uiMessages"]] == ["Message 3", "Message 4"]
    assert texts(caller.get(f"{PATH}?perPage=2&page=2")) == ["Message 0"]
    assert texts(caller.get(f"{PATH}?perPage=2&orderBy={ascending}")) == ["Message 0", "Message 1"]
    assert texts(caller.get(f"{PATH}?perPage=2&orderBy=createdAt")) == ["Message 4", "Message 3"]


def test_a_message_with_tool_calls_is_one_message(caller, thread):
    parts = [{"type": "text", "text": "Let me see."}, {"type": "tool-invocation", "toolInvocation": CALL}]
    sent = message({"format": 2, "parts": [*parts, {"type": "text", "text": "It is 3."}], "metadata": {"a": 1}})
    sent |= {"role": "assistant", "id": "m1", "createdAt": "2026-01-02T03:04:05.678Z"}

    saved = caller.post(SAVE, {"messages": [sent]})

    (stored,) = saved.body["messages"]
    assert stored == {
        "id": "m1",
        "threadId": "t",
        "resourceId": "alice",
        "role": "assistant",
        "createdAt": "2026-01-02T03:04:05.678Z",
        "type": "v2",
        "content": {
            "format": 2,
            "parts": sent["content"]["parts"],
            "content": "Let me see.\nIt is 3.",
            "metadata": {"a": 1},
        },
    }
    assert caller.get(f"{PATH}?perPage=1").body["messages"] == [stored]
    assert caller.get(PATH).body["total"] == 6
    assert Message.objects.filter(head_number=6).count() == 3


def test_a_period_includes_its_ends_unless_it_says_otherwise(caller, thread):
    """The times of a response have milliseconds, and the database has microseconds."""
    Message.objects.filter(number=2).update(created_at=datetime(2026, 1, 2, 3, 4, 5, 678901, UTC))
    time = "2026-01-02T03:04:05.678Z"

    def chosen(**period):
        return texts(caller.get(f"{PATH}?filter={quote(json.dumps({'dateRange': period}))}"))

    assert chosen(start=time, end=time) == chosen(end=time) == ["Message 1"]
    assert chosen(end=time, endExclusive=True) == []
    assert "Message 1" in chosen(start=time)
    assert "Message 1" not in chosen(start=time, startExclusive=True)


def test_messages_are_filtered_and_others_included(caller, thread):
    caller.post(SAVE, {"messages": [message("Answer", "assistant"), message("Tagged", id="m")]})
    first = caller.get(f"{PATH}?orderBy=createdAt&sortDirection=ASC").body["messages"][1]

    def chosen(**criteria):
        return texts(caller.get(f"{PATH}?filter={quote(json.dumps(criteria))}"))

    assert chosen(roles=["assistant"]) == ["Answer"]
    assert chosen(dateRange={"end": "2020-01-01T00:00:00Z"}) == []
    assert len(chosen(dateRange={"start": "2020-01-01T00:00:00Z"})) == 7
    include = quote(json.dumps([{"id": first["id"], "withPreviousMessages": 1}]))
    assert texts(caller.get(f"{PATH}?perPage=1&include={include}")) == ["Message 0", "Message 1", "Tagged"]
    newest_first = texts(caller.get(f"{PATH}?perPage=1&include={include}&orderBy=createdAt&sortDirection=DESC"))
    assert newest_first == ["Tagged", "Message 1", "Message 0"]
    for invalid in ("filter={", 'filter={"roles":["system"]}', 'filter={"dateRange":{"start":1}}', "include=7"):
        assert caller.get(f"{PATH}?{quote(invalid, safe='=')}").status_code == 400


def test_messages_of_other_threads_of_the_resource_are_included(caller, editor, thread):
    other, foreign = (add_thread(editor, key, key, [("user", key)]) for key in ("alice", "bob"))
    ids = {row.key: row.messages.get().key for row in (other, foreign)}

    def page(key):
        return caller.get(f"{PATH}?perPage=1&include={quote(json.dumps([{'id': ids[key], 'threadId': key}]))}")

    assert texts(page("alice")) == ["Message 4", "alice"]
    refused = page("bob")
    assert (refused.status_code, "bob" in str(refused.body.get("messages"))) == (403, False)


def test_messages_are_filtered_by_their_metadata(caller, thread):
    def content(text, **metadata):
        return {"format": 2, "parts": [{"type": "text", "text": text}], "metadata": metadata}

    tagged = [
        content("One", colour="teal", place={"floor": 1, "room": "a"}),
        content("Two", colour="teal", urgent=True, tags=["x"]),
        content("Three", colour="red", urgent=1),
    ]
    assert caller.post(SAVE, {"messages": [message(item) for item in tagged]}).status_code == 200

    def chosen(metadata, **others):
        answer = caller.get(f"{PATH}?filter={quote(json.dumps({'metadata': metadata, **others}))}")
        assert answer.status_code == 200
        return texts(answer)

    assert chosen({"colour": "teal"}) == ["One", "Two"]
    assert chosen({"colour": "teal", "urgent": True}) == ["Two"]
    assert chosen({"urgent": 1}) == ["Three"]
    assert chosen({"tags": ["x"]}) == ["Two"]
    assert chosen({"tags": []}) == chosen({"place": {}}) == []
    assert chosen({"place": {"floor": 1}}) == ["One"]
    assert chosen({"colour": "blue"}) == chosen({"missing": None}) == []
    assert len(chosen({})) == 8
    assert chosen({"colour": "teal"}, roles=["assistant"]) == []
    assert caller.get(f"{PATH}?filter={quote(json.dumps({'metadata': 7}))}").status_code == 400


def test_the_same_message_is_stored_once(caller, thread):
    first = caller.post(SAVE, {"messages": [message(id="m")]})
    again = caller.post(SAVE, {"messages": [message(id="m")]})
    other = caller.post(SAVE, {"messages": [message("Another", id="m")]})

    assert first.body == again.body
    assert (other.status_code, other.body["code"]) == (409, "message_exists")
    assert caller.get(PATH).body["total"] == 6


def test_a_message_twice_in_one_request_is_stored_once(caller, thread):
    sent = [message("A", id="a"), message("B"), message("A", id="a"), message("C")]
    assert texts(caller.post(SAVE, {"messages": sent})) == ["A", "B", "A", "C"]
    assert texts(caller.get(f"{PATH}?perPage=4")) == ["Message 4", "A", "B", "C"]

    sent[2]["content"] = "Another"
    assert caller.post(SAVE, {"messages": sent}).status_code == 409
    assert caller.get(PATH).body["total"] == 8


def test_stored_answers_with_calls_are_returned_among_new_messages(caller, thread):
    parts = [{"type": "tool-invocation", "toolInvocation": CALL}, {"type": "text", "text": "Seventeen."}]
    answer = message({"format": 2, "parts": parts}, "assistant", id="answer")
    first = caller.post(SAVE, {"messages": [answer]}).body["messages"]

    sent = [message("A"), answer, message("B"), message("Message", id="c")]
    saved = caller.post(SAVE, {"messages": sent}).body["messages"]

    assert [saved[1]] == first
    assert [item["content"]["content"] for item in saved] == ["A", "Seventeen.", "B", "Message"]
    assert texts(caller.get(f"{PATH}?perPage=4")) == ["Seventeen.", "A", "B", "Message"]


def test_messages_are_saved_in_their_threads_in_order(caller, editor, thread):
    add_thread(editor, "u", texts=[])
    sent = [message(text, threadId=key) for text, key in (("A", "t"), ("B", "u"), ("C", "u"), ("D", "t"))]

    saved = caller.post(SAVE, {"messages": sent}).body["messages"]

    assert [(item["threadId"], item["content"]["content"]) for item in saved] == [
        *(("t", "A"), ("u", "B"), ("u", "C"), ("t", "D")),
    ]
    assert texts(caller.get(f"{PATH}?perPage=3")) == ["Message 4", "A", "D"]
    assert texts(caller.get("/api/memory/threads/u/messages")) == ["B", "C"]


def test_many_messages_take_few_queries(caller, thread):
    """A request has the lock of the thread, and on SQLite that of the database, until all are stored."""

    def count(number):
        with CaptureQueriesContext(connection) as queries:
            sent = [message(str(item), id=f"many-{number}-{item}") for item in range(number)]
            assert caller.post(SAVE, {"messages": sent}).status_code == 200
        return len(queries)

    few = count(1)
    assert count(100) <= few + 10
    assert count(100) <= few + 20  # all of them are stored already


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"content": [{"type": "file", "data": "x", "mimeType": "image/png"}]}, "messages[0].content[0]"),
        ({"content": {"parts": [{"type": "image"}]}}, "messages[0].content.parts[0]"),
        ({"experimental_attachments": [{"url": "data:,x"}]}, "messages[0].experimental_attachments"),
        (
            {"content": {"parts": [{"type": "text", "text": "x"}], "experimental_attachments": [{"url": "data:,x"}]}},
            "messages[0].content.experimental_attachments",
        ),
        ({"content": 7}, "messages[0].content"),
        ({"role": "assistant", "content": {"parts": [{"type": "step-start"}]}}, "messages[0].content.parts"),
        ({"role": "system"}, "messages[0].role"),
        ({"threadId": None}, "messages[0].threadId"),
        ({"createdAt": "yesterday"}, "messages[0].createdAt"),
        ({"content": "x" * 513 * 1024}, "messages[0]"),
    ],
)
def test_what_cannot_be_stored_is_refused_with_its_path(caller, thread, fields, field):
    answer = caller.post(SAVE, {"messages": [message() | fields]})

    assert answer.status_code == 400
    assert [issue["field"] for issue in answer.body["issues"]] == [field]
    assert Message.objects.count() == 5


def test_messages_are_deleted_together_or_not_at_all(caller, thread):
    ids = [item["id"] for item in caller.get(PATH).body["messages"]]
    path = "/api/memory/messages/delete"

    missing = caller.post(path, {"messageIds": [ids[0], "nothing"]})
    one = caller.post(path, {"messageIds": {"id": ids[0]}})
    two = caller.post(path, {"messageIds": ids[1:3]})

    assert missing.status_code == 404
    assert one.body == {"success": True, "message": "1 message deleted successfully"}
    assert two.body["message"] == "2 messages deleted successfully"
    assert caller.get(PATH).body["total"] == 2


def test_messages_are_deleted_without_reading_them(caller, editor):
    thread = add_thread(editor, texts=[("user", str(number)) for number in range(50)])
    keys = [*thread.messages.values_list("key", flat=True)]

    with CaptureQueriesContext(connection) as queries:
        assert caller.post("/api/memory/messages/delete", {"messageIds": keys}).status_code == 200

    assert not Message.objects.exists()
    assert len(queries) < 20
    assert not [query for query in queries if '"runs_app_message"."data"' in query["sql"]]


def test_a_search_finds_messages_with_all_words(caller, editor, thread):
    add_thread(editor, "other", texts=[("user", "My colour is blue")], title="Colours")

    results = caller.get("/api/memory/search?searchQuery=colour+BLUE&resourceId=alice&agentId=concierge").body
    near = caller.get('/api/memory/search?searchQuery=%222%22&threadId=t&memoryConfig={"messageRange":1}').body

    assert (results["count"], results["searchScope"], results["searchType"]) == (1, "resource", "text")
    assert (results["results"][0]["threadId"], results["results"][0]["threadTitle"]) == ("other", "Colours")
    context = near["results"][0]["context"]
    assert [item["content"] for item in (*context["before"], *context["after"])] == ["Message 1", "Message 3"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Ich mag Äpfel.", "äpfel"),
        ("ÜBER uns", "über"),
        ("Die Bahnhofstraße", "Bahnhofstraße die"),
        ("Привет, мир", "привет МИР"),
        ("Cafe\u0301, c'est tout", "C'EST"),
        ("東京に行きます", "東京"),
        ("100% (sure)", "100% (sure)"),
    ],
)
def test_a_search_finds_words_of_other_languages_in_any_case(caller, editor, text, words):
    add_thread(editor, texts=[("user", text), ("user", "Something else")])

    body = caller.get(f"/api/memory/search?searchQuery={quote(words)}&threadId=t").body

    assert [result["content"] for result in body["results"]] == [text]


def test_a_search_by_words_names_an_answer_as_the_list_does(caller, editor):
    add_thread(editor, texts=[("user", "How many?")])
    parts = [{"type": "tool-invocation", "toolInvocation": CALL}, {"type": "text", "text": "There are seventeen."}]
    caller.post(SAVE, {"messages": [message({"format": 2, "parts": parts}, "assistant", id="answer")]})

    path = '/api/memory/search?searchQuery=seventeen&threadId=t&memoryConfig={"messageRange":5}'
    (result,) = caller.get(path).body["results"]

    assert result["id"] == "answer"
    assert [item["content"] for item in result["context"]["before"]] == ["How many?"]


def test_deleting_by_a_later_row_discards_the_observations_of_the_whole_answer(caller, editor):
    thread = add_thread(editor, texts=())
    parts = [{"type": "tool-invocation", "toolInvocation": CALL}, {"type": "text", "text": "There are seventeen."}]
    caller.post(SAVE, {"messages": [message({"format": 2, "parts": parts}, "assistant", id="answer")]})
    thread.observations.create(first=1, last=2, text="It counts.", tokens=2, message_tokens=2)

    caller.post("/api/memory/messages/delete", {"messageIds": thread.messages.get(number=3).key})

    assert (thread.messages.count(), thread.observations.count()) == (0, 0)


def test_the_memory_of_an_agent_is_described(caller):
    assert caller.get("/api/memory/config?agentId=concierge").body["memoryType"] == "local"
    status = caller.get("/api/memory/status?agentId=concierge").body
    assert (status["result"], status["observationalMemory"]["enabled"]) == (True, False)
    assert caller.get("/api/memory/config?agentId=nothing").status_code == 404


def test_an_id_of_several_threads_deletes_nothing_without_the_thread(caller, editor):
    for key, resource in (("t", "alice"), ("other", "bob")):
        add_thread(editor, key, resource, texts=())
        caller.post(SAVE, {"messages": [message(id="m1", threadId=key, resourceId=resource)]})
    delete = "/api/memory/messages/delete"

    refused = caller.post(delete, {"messageIds": "m1"})
    deleted = caller.post(f"{delete}?resourceId=alice", {"messageIds": "m1"})

    assert (refused.status_code, refused.body["code"]) == (409, "message_ambiguous")
    assert deleted.status_code == 200
    assert [*Message.objects.values_list("thread__key", flat=True)] == ["other"]
    assert caller.post(f"{delete}?threadId=t", {"messageIds": "m1"}).status_code == 404


def test_reminders_are_listed_on_request(caller, editor):
    thread = add_thread(editor)
    for kind in ("system-reminder", "reactive", "notification", "user"):
        append_signal(thread, Signal(kind, kind), Author(editor.pk, "ann"), {"wakes": False})
        thread.refresh_from_db()
    path = "/api/memory/threads/t/messages"

    without, with_them = caller.get(path).body, caller.get(f"{path}?includeSystemReminders=true").body

    assert [message["content"]["content"] for message in without["messages"][2:]] == ["notification", "user"]
    assert (without["total"], with_them["total"]) == (4, 6)


@pytest.mark.parametrize(
    ("roles", "expected"),
    [
        (["user"], ["Hello", "user", "user-message"]),
        (["signal"], ["notification", "tagged"]),
        (["assistant", "signal"], ["Good day", "notification", "tagged"]),
        (["user", "assistant", "signal"], ["Hello", "Good day", "notification", "user", "user-message", "tagged"]),
        ([], []),
    ],
)
def test_messages_are_filtered_by_the_role_that_clients_see(caller, editor, thread_with_signals, roles, expected):
    """The words that a person sent as a signal are those of a user."""
    answer = caller.get(f"{PATH}?filter={quote(json.dumps({'roles': roles}))}")

    assert texts(answer) == expected
    assert {item["role"] for item in answer.body["messages"]} == {*roles}


@pytest.fixture
def thread_with_signals(editor):
    thread = add_thread(editor)
    for kind in ("notification", "user", "user-message"):
        append_signal(thread, Signal(kind, kind), Author(editor.pk, "ann"), {})
    append_signal(thread, Signal("user", "tagged", tag_name="note"), Author(editor.pk, "ann"), {})
    return thread


def test_a_question_comes_before_the_signals_that_joined_its_run(caller, editor, monkeypatch):
    """The signals are stored first, because the question is stored when its run ends."""
    monkeypatch.setattr(pagination, "ROWS_PER_READ", 1)
    monkeypatch.setattr(threads, "EXPORT_BATCH", 3)
    thread, began_at = add_thread(editor, texts=[("assistant", "Welcome")]), timezone.now()
    for text in ("First", "Second"):
        append_signal(thread, Signal("user", text), Author(editor.pk, "ann"), {})
    data = [
        {"kind": "request", "parts": [{"part_kind": "user-prompt", "content": "Question"}]},
        {"kind": "response", "parts": [{"part_kind": "text", "content": "Answer"}]},
    ]
    messages.save_run_messages(thread.pk, data, uuid4(), prompt_at=began_at)

    listed = caller.get(PATH)

    in_order = ["Welcome", "Question", "First", "Second", "Answer"]
    assert texts(listed) == in_order
    assert listed.body["messages"][1]["createdAt"] == format_timestamp(began_at)
    assert texts(caller.get(f"{PATH}?orderBy=createdAt")) == in_order[::-1]
    lines = [json.loads(line) for line in threads.thread_lines(thread)]
    assert [line["content"]["content"] for line in lines[1:]] == in_order
    # Pages are in the order of storage, so that who reads them one after the other misses none.
    order = quote('{"field":"createdAt","direction":"ASC"}')
    pages = [texts(caller.get(f"{PATH}?orderBy={order}&perPage=3&page={page}")) for page in range(2)]
    assert pages == [["Welcome", "First", "Second"], ["Question", "Answer"]]
    new = quote(json.dumps([{"id": listed.body["messages"][3]["id"], "withNextMessages": 9}]))
    assert texts(caller.get(f"{PATH}?perPage=1&include={new}")) == ["Question", "Second", "Answer"]


def test_a_full_thread_takes_no_messages_and_begins_no_run(caller, editor, monkeypatch):
    monkeypatch.setattr(messages, "MAX_THREAD_MESSAGES", 3)
    thread = add_thread(editor)
    message = {"threadId": "t", "resourceId": "alice", "role": "user", "content": "More"}
    call = {"messages": "Hello", "memory": {"thread": "t", "resource": "alice"}}

    answers = [
        caller.post("/api/agents/concierge/generate", call),
        caller.post("/api/memory/save-messages", {"messages": [message, message]}),
        caller.post("/api/memory/save-messages", {"messages": [message]}),
        caller.post("/api/agents/concierge/send-message", {"message": "x", "threadId": "t", "resourceId": "alice"}),
    ]

    assert [answer.status_code for answer in answers] == [409, 409, 200, 409]
    assert {answer.body.get("code") for answer in answers} == {"thread_full", None}
    thread.messages.last().delete()
    assert caller.post("/api/memory/save-messages", {"messages": [message]}).status_code == 200


def test_the_answer_of_a_run_that_began_is_stored_above_the_limit(editor, monkeypatch):
    monkeypatch.setattr(messages, "MAX_THREAD_MESSAGES", 3)
    thread = add_thread(editor)
    data = [{"kind": "request", "parts": []}] * 5

    messages.save_run_messages(thread.pk, data, uuid4())

    assert thread.messages.count() == 7
