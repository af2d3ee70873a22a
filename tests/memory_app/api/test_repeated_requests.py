"""POST requests of conversations with an `Idempotency-Key`."""

from functools import partial

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from access_app.models import ApiKey
from agents_app.models import IdempotencyRecord
from jobs_app import runner
from jobs_app.models import Job
from memory_app.models import Message, Participant, Resource, Thread
from tests.api_client import Caller
from tests.concurrently import run_concurrently
from tests.factories import AgentFactory, api_key, member
from tests.memory_app.conftest import add_thread

pytestmark = pytest.mark.django_db

AT = "/api/memory"
NEW = {"resourceId": "alice", "title": "turquoise", "titel": "x"}
SAVED = {"messages": [{"threadId": "t", "resourceId": "alice", "role": "user", "content": "turquoise"}] * 2}
SENT = {"threadId": "t", "resourceId": "alice", "message": "turquoise", "ifIdle": {"behavior": "persist"}}
DISCARDED = {**SENT, "ifIdle": {"behavior": "discard"}}
REQUESTS = [
    (f"{AT}/threads", NEW),
    (f"{AT}/network/threads", NEW),
    (f"{AT}/threads/t/clone", {"title": "turquoise"}),
    (f"{AT}/threads/t/transfer?resourceId=alice", {"resourceId": "bob"}),
    (f"{AT}/threads/t/participants", {"username": "eve"}),
    (f"{AT}/threads/t/working-memory", {"workingMemory": "turquoise"}),
    (f"{AT}/save-messages", SAVED),
    (f"{AT}/messages/delete", {"messageIds": ["m1"]}),
    (f"{AT}/resources/alice/export", None),
    (f"{AT}/resources/alice/forget", None),
    *((f"/api/agents/concierge/{name}", SENT) for name in ("send-message", "queue-message")),
    ("/api/agents/concierge/signals", {**SENT, "signal": {"type": "notification", "contents": "turquoise"}}),
    ("/api/agents/concierge/send-message", DISCARDED),
    ("/api/agents/concierge/threads/abort", {"threadId": "t"}),
]


@pytest.fixture
def thread(editor, agent):
    thread = add_thread(editor, agent=agent, title="turquoise")
    thread.messages.filter(number=1).update(key="m1")
    member("viewer", agent.owner_id, username="eve")
    return thread


def rows():
    """Return the rows that a request may add or change, and that its repeat must leave as they are."""
    return [
        *(model.objects.count() for model in (Thread, Message, Participant, Job)),
        *Thread.objects.order_by("pk").values_list("resource_key", "updated_at", "working_revision"),
        *Resource.objects.order_by("pk").values_list("updated_at", "working_revision"),
    ]


@pytest.mark.parametrize(("path", "body"), REQUESTS, ids=[path for path, _ in REQUESTS])
def test_a_repeat_has_the_first_response_and_no_effect(caller, thread, path, body):
    first = caller.post(path, body, Idempotency_Key="k")
    before = rows()

    again = caller.post(path, body, Idempotency_Key="k")
    other = caller.post(path, {**(body or {}), "strict": 1}, Idempotency_Key="k")

    assert first.status_code in (200, 201, 202), first.body
    assert (again.status_code, again.body) == (first.status_code, first.body)
    assert again.headers.get("ETag") == first.headers.get("ETag")
    assert again.headers["Idempotent-Replayed"] == "true"
    assert (other.status_code, other.body["code"]) == (422, "key_reused")
    assert rows() == before
    # Or the deletion of a conversation would leave a copy of it.
    assert "turquoise" not in IdempotencyRecord.objects.get().content


@pytest.mark.parametrize(("path", "body"), [*REQUESTS[:4], REQUESTS[6], *REQUESTS[10:12]])
def test_a_repeat_neither_shows_nor_restores_what_was_deleted(caller, thread, path, body):
    caller.post(path, body, Idempotency_Key="k")
    Thread.objects.all().delete()

    assert caller.post(path, body, Idempotency_Key="k").status_code == 404
    assert not Thread.objects.exists()


@pytest.mark.parametrize(("path", "body"), [REQUESTS[6], REQUESTS[10]])
def test_a_repeat_does_not_show_deleted_messages(caller, thread, path, body):
    caller.post(path, body, Idempotency_Key="k")
    Message.objects.all().delete()

    assert caller.post(path, body, Idempotency_Key="k").status_code == 404


def test_a_repeat_reads_the_messages_of_each_thread_together(caller, thread, editor):
    add_thread(editor, "u")
    body = {"messages": [{**SAVED["messages"][0], "threadId": key} for key in "tu" * 20]}
    first = caller.post(f"{AT}/save-messages", body, Idempotency_Key="k")

    with CaptureQueriesContext(connection) as queries:
        again = caller.post(f"{AT}/save-messages", body, Idempotency_Key="k")

    assert again.body == first.body
    assert len(queries) < 30


def test_a_repeated_copy_has_the_messages_of_the_first_response(caller, thread):
    first = caller.post(f"{AT}/threads/t/clone", {"newThreadId": "c"}, Idempotency_Key="k")
    caller.post(f"{AT}/save-messages", {"messages": [{**SAVED["messages"][0], "threadId": "c"}]})

    again = caller.post(f"{AT}/threads/t/clone", {"newThreadId": "c"}, Idempotency_Key="k")

    assert again.body["clonedMessages"] == first.body["clonedMessages"]


def test_a_key_belongs_to_whom_an_api_key_serves(editor, agent):
    keys = [{"resource": "alice"}, {"resource": "bob"}, {}, {"realm_owner": agent.owner_id}]
    callers = [Caller(api_key(editor, **names)) for names in keys]

    def create(caller):
        return caller.post(f"{AT}/threads", {"resourceId": None}, Idempotency_Key="k")

    callers[3].post(f"{AT}/threads", {"resourceId": "carol"}, Idempotency_Key="k")
    created = [create(caller).body["id"] for caller in callers[:3]]

    assert len({*created}) == 3
    assert [create(caller).body["id"] for caller in callers[:3]] == created
    assert create(Caller(api_key(editor))).body["id"] == created[2]
    assert create(callers[3]).status_code == 422


def test_a_repeat_does_not_show_a_thread_that_was_given_to_somebody_else(caller, editor):
    alice = Caller(api_key(editor, resource="alice"))
    created = alice.post(f"{AT}/threads", {}, Idempotency_Key="k")
    caller.post(f"{AT}/threads/{created.body['id']}/transfer", {"resourceId": "bob"})

    assert alice.post(f"{AT}/threads", {}, Idempotency_Key="k").status_code == 404


@pytest.mark.parametrize(("path", "body"), REQUESTS, ids=[path for path, _ in REQUESTS])
def test_a_repeat_needs_the_rights_of_the_first_request(caller, thread, path, body):
    caller.post(path, body, Idempotency_Key="k")
    ApiKey.objects.update(role="viewer")

    assert caller.post(path, body, Idempotency_Key="k").status_code == 403


def test_a_repeated_deletion_of_a_resource_that_is_gone_is_no_error(caller, thread):
    first = caller.post(f"{AT}/resources/alice/forget", Idempotency_Key="k")
    runner.run_claimed(first.body["id"])

    assert caller.post(f"{AT}/resources/alice/forget").status_code == 404
    assert caller.post(f"{AT}/resources/alice/forget", Idempotency_Key="k").body == first.body


@pytest.mark.django_db(transaction=True)
def test_concurrent_repeats_create_one_thread():
    AgentFactory(id="concierge")
    key = api_key(member("editor"))

    answers = run_concurrently([partial(Caller(key).post, f"{AT}/threads", NEW, Idempotency_Key="k")] * 6)

    assert {answer.status_code for answer in answers} == {201}
    assert len({answer.body["id"] for answer in answers}) == Thread.objects.count() == 1
