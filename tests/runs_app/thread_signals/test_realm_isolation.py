"""Isolation of realms on the routes that write to a thread, send to it or run an agent in it."""

import json

import pytest

from access_app.models import Membership
from memory_app.models import Message, Participant, Thread
from runs_app.models import AgentRun
from tests.api_client import Caller
from tests.factories import api_key, member
from tests.memory_app.api.test_realm_isolation import OWNER, SECRET, STRANGERS, key_of, owner, service

__all__ = ["owner", "service"]

pytestmark = pytest.mark.usefixtures("idle_engine")

CONTEXT = {"mastra__resourceId": "alice", "mastra__threadId": "t"}
AGENT, THREAD = "/api/agents/concierge", "/api/memory/threads/t"


def requests():
    """Return a request of each route: method, path and body. Those that may create a thread come last."""
    place = {"threadId": "t", "resourceId": "alice", "requestContext": CONTEXT}
    idle = {"behavior": "persist", "streamOptions": {"requestContext": CONTEXT, "memory": {"resource": "alice"}}}
    signal = {"type": "notification", "contents": "x"}
    return [
        ("POST", f"{AGENT}/threads/subscribe", place),
        ("POST", f"{AGENT}/threads/abort", place),
        ("PATCH", THREAD, {"title": "Mine", "requestContext": CONTEXT}),
        ("DELETE", f"{THREAD}?resourceId=alice", None),
        ("POST", f"{THREAD}/working-memory", {"workingMemory": "x", "requestContext": CONTEXT}),
        ("POST", "/api/memory/resources/alice/export", {}),
        ("POST", "/api/memory/resources/alice/forget", {}),
        ("POST", f"{AGENT}/signals", {**place, "signal": signal, "ifIdle": idle}),
        ("POST", f"{AGENT}/send-message", {**place, "message": "x", "ifIdle": idle}),
        ("POST", f"{AGENT}/queue-message", {**place, "message": "x", "ifIdle": idle}),
        ("POST", f"{AGENT}/generate", {"messages": "x", "memory": {"thread": "t", "resource": "alice"}, **place}),
    ]


def private_state():
    """Return what strangers must not change: the thread of alice, its messages and her working memory."""
    thread = Thread.objects.select_related("resource").get(realm=f"o{OWNER}", key="t")
    columns = (thread.title, thread.resource_key, thread.working_revision, thread.resource.working_revision)
    return columns, [*thread.messages.values_list("key", "text")], AgentRun.objects.filter(thread=thread).count()


@pytest.mark.parametrize("kind", STRANGERS)
def test_strangers_neither_change_nor_join_a_conversation(service, owner, kind):
    before = private_state()
    stranger = Caller(key_of(kind, owner))

    for method, path, body in requests():
        answer = stranger.call(method, path, body)

        assert answer.status_code < 500, path
        assert SECRET not in json.dumps(answer.body), path
        assert private_state() == before, path


def test_a_claim_about_the_resource_changes_nothing(service, owner):
    bob = Caller(api_key(owner, realm_owner=OWNER, resource="bob"))
    body = {"messages": "Which colour?", "memory": {"thread": "new"}, "requestContext": CONTEXT}

    answer = bob.post(f"{AGENT}/generate", body)

    run = AgentRun.objects.get()
    assert SECRET not in json.dumps(answer.body)
    assert (run.thread.key, run.thread.resource_key, run.resource.key) == ("new", "bob", "bob")
    assert "mastra__resourceId" not in run.request_context


def test_a_participant_who_leaves_the_team_reads_and_sends_no_more(service):
    user = member("editor", OWNER)
    thread = Thread.objects.get()
    Participant.objects.create(thread=thread, user=user, name="Guest")
    guest = Caller(api_key(user))
    body = {"threadId": "t", "message": "Hello", "ifIdle": {"behavior": "persist"}}

    assert guest.post(f"{AGENT}/send-message", body).status_code == 200
    Membership.objects.filter(user=user).delete()

    assert guest.post(f"{AGENT}/send-message", body).status_code in (403, 404)
    assert guest.get(f"{THREAD}/messages").status_code == 404
    assert Message.objects.filter(thread=thread, author=user).count() == 1
