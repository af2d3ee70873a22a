"""Routes of threads."""

import json
import re
from datetime import UTC, datetime
from urllib.parse import quote
from uuid import uuid4

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from memory_app.history import copies
from memory_app.history.messages import Author, load_messages
from memory_app.history.messages_for_model import UNPROCESSED
from memory_app.history.signal_markup import Signal
from memory_app.history.thread_signals import (
    append_signal,
    claim_signals,
    refuse_signals,
    stored_signals,
    waiting_signals,
)
from memory_app.models import Thread, WorkingRevision
from memory_app.working import values
from memory_app.working.values import Origin
from tests.factories import AgentFactory
from tests.memory_app.conftest import add_thread

pytestmark = pytest.mark.django_db

THREADS = "/api/memory/threads"


def create(caller, key, resource="alice", **fields):
    return caller.post(f"{THREADS}?agentId=concierge", {"threadId": key, "resourceId": resource, **fields})


def keys(answer):
    return [thread["id"] for thread in answer.body["threads"]]


def test_a_thread_is_locked_before_the_rows_that_go_with_it_are_read(caller):
    """Otherwise a message that is stored meanwhile violates a constraint, which was a 500."""
    caller.post("/api/memory/threads", {"threadId": "locked"})

    with CaptureQueriesContext(connection) as queries:
        assert caller.delete("/api/memory/threads/locked").status_code == 200

    statements = [query["sql"] for query in queries]
    begin = next(index for index, sql in enumerate(statements) if sql.startswith(("BEGIN", "SAVEPOINT")))
    collected = [sql for sql in statements[:begin] if sql.startswith("SELECT") and "memory_app_workingrevision" in sql]
    assert collected == []
    tables = [re.search(r' FROM "(\w+)"', sql) for sql in statements[begin:] if sql.startswith("SELECT")]
    # The end of a run locks its row, and then the thread: in another order, both could wait for each other.
    names = [table and table[1] for table in tables]
    assert names[:3] == ["runs_app_thread", "runs_app_agentrun", "runs_app_thread"]  # first those below the thread


def test_a_thread_is_created_read_changed_and_deleted(caller, editor):
    created = create(caller, "t", title="Trip", metadata={"a": {"b": 1}})
    assert created.status_code == 201
    assert {*created.body} == {"id", "resourceId", "title", "metadata", "createdAt", "updatedAt"}
    assert create(caller, "t", title="Other").body == created.body
    assert create(caller, "t", resource="bob").status_code == 409

    assert caller.get(f"{THREADS}/t").body == created.body
    changed = caller.patch(f"{THREADS}/t", {"title": "Journey"})
    assert (changed.body["title"], changed.body["metadata"]) == ("Journey", {"a": {"b": 1}})
    assert caller.patch(f"{THREADS}/t", {"resourceId": "bob"}).status_code == 403

    assert caller.delete(f"{THREADS}/t?resourceId=undefined").body == {"result": "Thread deleted"}
    assert caller.get(f"{THREADS}/t").status_code == 404


def test_threads_are_listed_by_resource_order_and_metadata(caller, editor):
    for key in ("a", "b", "c"):
        create(caller, key, metadata={"tag": key, "same": True, "nested": {"n": 1}})
    create(caller, "d", resource="bob")
    add_thread(editor, "tested", experiment_id=uuid4())
    own = create(caller, "e", resource=None)
    assert own.body["resourceId"] == f"u{editor.pk}"

    page = caller.get(f"{THREADS}?resourceId=alice&perPage=2")
    assert (keys(page), page.body["total"], page.body["hasMore"]) == (["c", "b"], 3, True)
    for order in (
        "orderBy[field]=createdAt&orderBy[direction]=ASC",
        "orderBy=createdAt&sortDirection=ASC",
        "orderBy=" + quote(json.dumps({"field": "createdAt", "direction": "ASC"})),
    ):
        assert keys(caller.get(f"{THREADS}?resourceId=alice&{order}")) == ["a", "b", "c"]
    for criteria, expected in (
        ({"tag": "b"}, ["b"]),
        ({"same": True, "nested": {"n": 1}}, ["c", "b", "a"]),
        ({"same": "true"}, []),
        ({"nested": {"n": 2}}, []),
    ):
        assert keys(caller.get(f"{THREADS}?resourceId=alice&metadata={quote(json.dumps(criteria))}")) == expected
    assert keys(caller.get(f"{THREADS}?resourceId=undefined")) == ["e"]


@pytest.mark.parametrize(
    ("criteria", "expected"),
    [
        ({"tags": ["x"]}, ["one"]),
        ({"tags": ["y", "x"]}, []),
        ({"tags": []}, []),
        ({"place": {}}, ["one"]),
        ({"place": {"floor": 1}}, ["two"]),
    ],
)
def test_lists_and_empty_objects_of_metadata_are_found_only_as_they_are(caller, criteria, expected):
    """The operator of PostgreSQL also accepts those with more in them."""
    create(caller, "one", metadata={"tags": ["x"], "place": {}})
    create(caller, "two", metadata={"tags": ["x", "y"], "place": {"floor": 1}})
    create(caller, "none")

    assert keys(caller.get(f"{THREADS}?metadata={quote(json.dumps(criteria))}&resourceId=alice")) == expected


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"threadId": "a/b"}, "threadId"),
        ({"threadId": "a\nb"}, "threadId"),
        ({"threadId": "x" * 257}, "threadId"),
        ({"threadId": 7}, "threadId"),
        ({"resourceId": ""}, "resourceId"),
        ({"title": "x" * 201}, "title"),
        ({"metadata": []}, "metadata"),
        ({"metadata": {"a": "x" * 17_000}}, "metadata"),
    ],
)
def test_invalid_threads_are_refused_with_the_field(caller, body, field):
    answer = caller.post(THREADS, {"resourceId": "alice", **body})

    assert answer.status_code == 400
    assert [issue["field"] for issue in answer.body["issues"]] == [field]
    assert not Thread.objects.exists()


def test_a_thread_is_copied_with_some_of_its_messages(caller, editor):
    add_thread(editor, texts=[("user", "One"), ("assistant", "Two"), ("user", "Three")], title="Trip")

    copied = caller.post(f"{THREADS}/t/clone", {"newThreadId": "c", "options": {"messageLimit": 2}})
    first = caller.get(f"{THREADS}/t/messages").body["messages"][0]
    one = caller.post(f"{THREADS}/t/clone", {"options": {"messageFilter": {"messageIds": [first["id"]]}}})
    taken = caller.post(f"{THREADS}/t/clone", {"newThreadId": "c"})
    invalid = caller.post(f"{THREADS}/t/clone", {"options": {"messageLimit": -1, "messageFilter": {"endDate": 7}}})

    assert copied.body["thread"]["title"] == "Clone of Trip"
    texts = [message["content"]["content"] for message in copied.body["clonedMessages"]]
    assert texts == ["Two", "Three"]
    assert copied.body["clonedMessages"][1]["author"]["name"] == editor.username
    assert [message["content"]["content"] for message in one.body["clonedMessages"]] == ["One"]
    assert one.body["clonedMessages"][0]["id"] != first["id"]
    assert taken.status_code == 409
    assert len(invalid.body["issues"]) == 2


def test_a_copy_has_the_working_memory_of_the_thread_and_its_own_history(caller, editor):
    memory = {"options": {"workingMemory": {"enabled": True, "scope": "thread"}}}
    thread = add_thread(editor, agent=AgentFactory(id="noting", memory=memory))
    values.replace_text(thread, "- Likes trams", Origin(user_id=editor.pk))

    caller.post(f"{THREADS}/t/clone", {"newThreadId": "c"})
    caller.post(f"{THREADS}/t/clone", {"newThreadId": "d", "metadata": {"workingMemory": "- Likes boats"}})
    values.replace_text(thread, "- Likes trains", Origin(user_id=editor.pk))

    stored = Thread.objects.filter(key__in="cd").order_by("key").values_list("working_memory", "working_revision")
    assert [*stored] == [("- Likes trams", 1), ("- Likes boats", 1)]
    assert [*WorkingRevision.objects.filter(thread__key="c").values_list("value", "user")] == [
        ("- Likes trams", editor.pk)
    ]


def test_a_copy_that_would_be_too_large_is_refused(caller, editor, monkeypatch):
    add_thread(editor, texts=[("user", "One"), ("assistant", "Two")])
    monkeypatch.setattr(copies, "MAX_COPY_MB", 100 / 1024**2)

    refused = caller.post(f"{THREADS}/t/clone", {"newThreadId": "c"})

    assert (refused.status_code, [issue["field"] for issue in refused.body["issues"]]) == (
        400,
        ["options.messageLimit"],
    )
    assert not Thread.objects.filter(key="c").exists()


def test_signals_stay_signals_in_a_copy(caller, editor, agent):
    thread = add_thread(editor, texts=[("user", "One"), ("assistant", "Two")], agent=agent, agent_key=agent.pk)
    run, author = uuid4(), Author(editor.pk, editor.username)
    for text in ("Rain", "Storm", "Hail"):
        signal = Signal("system-reminder", text, attributes={"source": "weather"})
        append_signal(thread, signal, author, {"wakes": True})
        thread.refresh_from_db()
    rain, storm, _ = stored_signals(thread.pk)
    claim_signals([rain], run)
    refuse_signals([storm], "The agent was archived.")
    thread.messages.filter(number=2).update(run_id=run)

    copied = caller.post(f"{THREADS}/t/clone", {"newThreadId": "c"}).body["clonedMessages"]
    listed = caller.get(f"{THREADS}/c/messages").body["messages"]

    assert [(message["role"], message["content"]["content"]) for message in copied] == [
        *(("user", "One"), ("assistant", "Two"), ("signal", "Rain"), ("signal", "Storm")),  # Hail waits for a run
    ]
    assert copied[2]["content"]["metadata"]["signal"]["attributes"] == {"source": "weather"}
    assert [message["content"]["content"] for message in listed] == ["One", "Two"]
    copy = Thread.objects.get(key="c")
    assert not waiting_signals(copy.pk).exists()
    assert [row.delivery for row in stored_signals(copy.pk)] == [{}, {"error": "The agent was archived."}]
    window = load_messages(copy.pk, None)
    assert [UNPROCESSED in (message.get("metadata") or {}) for message in window] == [False, False, False, True]


def test_a_copy_may_have_the_messages_of_a_time(caller, editor):
    thread = add_thread(editor, texts=[("user", "One"), ("assistant", "Two"), ("user", "Three")])
    for number in (1, 2, 3):
        thread.messages.filter(number=number).update(created_at=datetime(2026, 5, number, 12, 0, 0, 500, UTC))

    def copied(**times):
        answer = caller.post(f"{THREADS}/t/clone", {"options": {"messageFilter": times}})
        return [message["content"]["content"] for message in answer.body["clonedMessages"]]

    assert copied(startDate="2026-05-02T00:00:00Z") == ["Two", "Three"]
    assert copied(endDate="2026-05-02T12:00:00Z") == ["One", "Two"]
    assert copied(startDate="2026-05-02T12:00:00.000Z", endDate="2026-05-03T11:00:00Z") == ["Two"]
    assert copied(startDate="2027-01-01T00:00:00Z") == []


def test_the_agent_of_a_body_is_ignored(caller, agent):
    """The published client sends it in the query."""
    created = caller.post(THREADS, {"threadId": "t", "resourceId": "alice", "agentId": "concierge"})
    named = create(caller, "u")

    assert (created.status_code, named.status_code) == (201, 201)
    assert {*Thread.objects.values_list("key", "agent")} == {("t", None), ("u", "concierge")}


def test_a_thread_moves_to_another_resource(caller, editor):
    other = add_thread(editor, "other")
    add_thread(editor)

    moved = caller.post(f"{THREADS}/t/transfer", {"resourceId": "bob"})

    assert moved.body["resourceId"] == "bob"
    assert Thread.objects.filter(pk=other.pk, updated_at=other.updated_at, resource__key="alice").exists()
    assert caller.get(f"{THREADS}/t?resourceId=alice").status_code == 403
    assert caller.get(f"{THREADS}/t/messages?resourceId=bob").body["total"] == 2
