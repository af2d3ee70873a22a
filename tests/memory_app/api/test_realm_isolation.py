"""Isolation of realms: which callers reach the text of a conversation, by every route."""

import json
import re
from urllib.parse import quote

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from access_app.models import ApiKey, Membership
from agentcms.urls import api_urlpatterns
from memory_app.api import participants, urls
from memory_app.history.threads import get_or_create_resource, open_thread
from memory_app.models import Message, Participant, Thread
from memory_app.realms import memory_caller
from memory_app.working.values import Origin, replace_text
from tests.api_client import Caller
from tests.factories import AgentFactory, UserFactory, api_key, member
from tests.memory_app.conftest import add_thread
from tests.runs import DEMO
from tests.runs_app.factories import RunFactory

pytestmark = pytest.mark.django_db

SECRET = "turquoise"
OWNER = "support"


def bodies(thread, secret_id):
    """Return a request of each route that could reach a thread, by its URL name: method, path and body."""
    at = f"/api/memory/threads/{thread}"
    save = {"messages": [{"threadId": thread, "resourceId": "alice", "role": "user", "content": "x", "id": secret_id}]}
    return {
        "api-threads": ("GET", "/api/memory/threads?resourceId=alice", None),
        "api-thread": ("GET", at, None),
        "api-thread-messages": ("GET", f"{at}/messages?resourceId=alice", None),
        "api-thread-clone": ("POST", f"{at}/clone", {"resourceId": "mine"}),
        "api-thread-transfer": ("POST", f"{at}/transfer", {"resourceId": "mine"}),
        "api-thread-working-memory": ("GET", f"{at}/working-memory", None),
        "api-thread-participants": ("GET", f"{at}/participants", None),
        "api-thread-participant": ("DELETE", f"{at}/participants/1", None),
        "api-save-messages": ("POST", "/api/memory/save-messages", save),
        "api-delete-messages": ("POST", "/api/memory/messages/delete", {"messageIds": [secret_id]}),
        "api-memory-config": ("GET", "/api/memory/config?agentId=concierge", None),
        "api-memory-status": ("GET", "/api/memory/status?agentId=concierge&resourceId=alice", None),
        "api-observational-memory": ("GET", f"/api/memory/observational-memory?threadId={thread}", None),
        "api-observation-buffer-status": (
            "POST",
            "/api/memory/observational-memory/buffer-status",
            {"threadId": thread, "agentId": "concierge"},
        ),
        "api-memory-search": ("GET", f"/api/memory/search?searchQuery={SECRET}&resourceId=alice", None),
        "api-network-threads": ("GET", "/api/memory/network/threads?resourceId=alice", None),
        "api-network-thread": ("GET", f"/api/memory/network/threads/{thread}", None),
        "api-network-thread-messages": ("GET", f"/api/memory/network/threads/{thread}/messages", None),
        "api-network-save-messages": ("POST", "/api/memory/network/save-messages", save),
        "api-network-delete-messages": ("POST", "/api/memory/network/messages/delete", {"messageIds": [secret_id]}),
    }


WITHOUT_THREADS = {"api-threads", "api-network-threads", "api-memory-search", "api-memory-config", "api-memory-status"}


def key_of(kind, owner):
    """Return a token of a caller who must not reach the conversation of the owner's end user alice."""
    if kind == "other realm":
        return api_key(member("manager", OWNER))
    if kind == "publisher":
        return api_key(member("publisher", OWNER))
    if kind == "other resource":
        return api_key(owner, realm_owner=OWNER, resource="bob")
    if kind == "own realm of the user":
        return api_key(owner)
    if kind in ("realm of another team", "same resource of another team"):
        Membership.objects.create(user=owner, owner_id="sales", role="editor")
        return api_key(owner, realm_owner="sales", resource="alice" if "same resource" in kind else "")
    if kind == "removed editor":
        user = member("editor", OWNER)
        Membership.objects.filter(user=user).delete()
        return api_key(user, realm_owner=OWNER)
    if kind == "cut key":
        return api_key(owner, "viewer", realm_owner=OWNER)
    assert kind == "removed participant"
    user = UserFactory()
    Participant.objects.create(thread=Thread.objects.get(), user=user, name="Former")
    return api_key(user)


STRANGERS = [
    "other realm",
    "publisher",
    "other resource",
    "own realm of the user",
    "realm of another team",
    "same resource of another team",
    "removed editor",
    "cut key",
    "removed participant",
]


@pytest.fixture
def owner():
    return member("editor", OWNER)


@pytest.fixture
def service(owner):
    """Return a caller for all end users of a team, after alice has told a secret."""
    agent = AgentFactory(id="concierge", owner_id=OWNER, memory="last-messages")
    key, token = ApiKey.objects.issue(owner, realm_owner=OWNER)
    owner.api_key = key
    texts = [("user", f"My colour is {SECRET}")]
    add_thread(owner, "t", "alice", texts, agent=agent, agent_key=agent.pk, title=SECRET, metadata={"a": SECRET})
    del owner.api_key
    return Caller(token)


def test_every_route_has_a_case():
    names = {pattern.name for pattern in urls.urlpatterns}

    assert names == {*bodies("t", "m")}
    assert any(pattern.url_patterns is urls.urlpatterns for pattern in api_urlpatterns if not pattern.callback)


def test_a_key_that_only_reads_changes_nothing(owner):
    thread = add_thread(owner, "t", "alice")
    message = thread.messages.first()
    reader, at = Caller(api_key(owner, "viewer")), "/api/memory/threads/t"
    new = {"threadId": "t", "resourceId": "alice", "role": "user", "content": "x"}
    writes = [
        ("POST", "/api/memory/threads", {"threadId": "new", "resourceId": "alice"}),
        ("PATCH", at, {"title": "Mine"}),
        ("DELETE", at, None),
        ("POST", f"{at}/clone", {"newThreadId": "new"}),
        ("POST", f"{at}/transfer", {"resourceId": "bob"}),
        ("POST", f"{at}/working-memory", {"workingMemory": "x"}),
        ("POST", f"{at}/participants", {"username": member("viewer", OWNER).username}),
        ("DELETE", f"{at}/participants/{owner.pk}", None),
        ("POST", "/api/memory/save-messages", {"messages": [new]}),
        ("POST", "/api/memory/messages/delete", {"messageIds": [message.key]}),
    ]

    answers = [reader.call(*write) for write in writes]

    assert reader.get(at).status_code == 200
    assert [(answer.status_code, "can only read" in answer.body["error"]) for answer in answers] == [(403, True)] * 10
    assert [*Thread.objects.values_list("key", "resource_key", "updated_at")] == [("t", "alice", thread.updated_at)]
    assert thread.messages.count() == 2


@pytest.mark.parametrize("kind", STRANGERS)
def test_strangers_see_nothing_of_a_conversation(service, owner, kind):
    secret = Message.objects.get()
    stranger = Caller(key_of(kind, owner))

    for name, (method, path, body) in bodies("t", secret.key).items():
        for suffix in ("", "mastra__resourceId=alice"):
            body_with = body and {**body, "requestContext": {"mastra__resourceId": "alice"}}
            joined = f"{path}{'&' if '?' in path else '?'}{suffix}" if suffix else path
            answer = stranger.call(method, joined, body_with)

            text = json.dumps(answer.body).replace(f'"query": "{SECRET}"', "")
            assert SECRET not in text, name
            assert answer.status_code in ({200, 400, 403, 404} if name in WITHOUT_THREADS else {403, 404}), name
            counts = {answer.body.get(member) for member in ("total", "count")}
            assert counts <= {None, 0}, name

    thread = Thread.objects.get(realm=f"o{OWNER}")
    assert (thread.resource_key, [*thread.messages.all()]) == ("alice", [secret])


@pytest.mark.parametrize("kind", ["other realm", "publisher", "own realm of the user", "realm of another team"])
def test_a_hidden_conversation_takes_the_same_queries_as_none(service, owner, kind):
    """Count the queries: the time of an answer must not say either whether there is such a conversation."""
    stranger = Caller(key_of(kind, owner))
    foreign, absent = bodies("t", Message.objects.get().key), bodies("none", "no-message")

    def send(request):
        with CaptureQueriesContext(connection) as queries:
            answer = stranger.call(*request)
        return answer.status_code, [re.sub(r"'[^']*'|\d+", "?", query["sql"]) for query in queries]

    for name in foreign:
        send(absent[name])  # fills the caches of the caller
        assert send(foreign[name]) == send(absent[name]), name


def test_a_participant_reads_the_conversation_and_nothing_else_of_its_resource(service, owner):
    thread, user = Thread.objects.get(), member("editor", OWNER)
    Participant.objects.create(thread=thread, user=user, name="Guest")
    replace_text(thread.resource, "Alice likes tea", Origin())
    guest, named = Caller(api_key(user)), "agentId=concierge&resourceId=alice"
    at = "/api/memory/threads/t/working-memory"

    for path in (at, f"{at}?resourceId=alice", f"{at}?agentId=concierge"):
        assert guest.get(path).body["code"] == "other_resource", path
        assert guest.post(path, {"workingMemory": "Mine"}).status_code == 403, path
    results = guest.get(f"/api/memory/search?searchQuery={SECRET}&threadId=t&{named}").body
    assert (results["count"], results["searchScope"]) == (1, "thread")
    assert guest.get(f"/api/memory/search?searchQuery={SECRET}&{named}").body["count"] == 0
    assert guest.get(f"/api/memory/observational-memory?threadId=t&{named}").status_code == 200
    assert guest.get(f"/api/memory/status?threadId=t&{named}").status_code == 200
    assert guest.get(f"/api/memory/status?threadId=t&{named.replace('alice', 'bob')}").status_code == 404
    thread.resource.refresh_from_db()
    assert thread.resource.working_memory == "Alice likes tea"


def test_a_key_for_one_resource_is_refused_on_writes_and_ignores_other_names_on_reads(service, owner):
    alice = Caller(api_key(owner, realm_owner=OWNER, resource="alice"))

    assert alice.get("/api/memory/threads?resourceId=bob").body["total"] == 1
    assert alice.get("/api/memory/threads/t?resourceId=bob").body["resourceId"] == "alice"
    assert alice.post("/api/memory/threads", {"resourceId": "bob"}).status_code == 403
    assert alice.patch("/api/memory/threads/t?resourceId=bob", {"title": "x"}).status_code == 403
    assert alice.post("/api/memory/threads/t/transfer", {"resourceId": "alice"}).status_code == 403
    assert alice.post("/api/memory/threads", {}).body["resourceId"] == "alice"
    assert alice.get("/api/stored/agents/concierge").body["code"] == "bound_key"
    assert alice.post("/api/runs/x/add-to-dataset", {}).body["code"] == "bound_key"


def test_a_key_for_one_resource_reads_the_runs_of_that_resource(service, owner):
    Membership.objects.create(user=owner, owner_id="sales", role="editor")
    names = (("sales", "bob"), (OWNER, "alice"), (OWNER, "bob"))
    keys = [ApiKey.objects.issue(owner, realm_owner=team, resource=name) for team, name in names]
    for owner.api_key, _ in keys[::2]:
        resource = get_or_create_resource(memory_caller(owner), "bob")
        run = RunFactory(requested_by=owner, resource=resource)
    RunFactory(requested_by=member("editor", OWNER), resource=resource)  # of another service
    _, alice, bob = keys

    assert Caller(alice[1]).get(f"/api/runs/{run.pk}").status_code == 404
    assert Caller(alice[1]).get("/api/runs").body["total"] == 0
    assert [entry["id"] for entry in Caller(bob[1]).get("/api/runs").body["runs"]] == [str(run.pk)]


@pytest.mark.usefixtures("idle_engine")
def test_an_idempotency_key_belongs_to_the_end_user_of_the_api_key(service, owner):
    agent = AgentFactory(id="greeter", owner_id=OWNER, model=DEMO, memory="last-messages")
    keys = [{"resource": "alice"}, {"resource": "bob"}, {}]
    callers = [Caller(api_key(owner, realm_owner=OWNER, **names)) for names in keys] + [Caller(api_key(owner))]
    callers.append(Caller(api_key(owner, resource="alice")))

    def ask(caller):
        body = {"messages": "Hello"}
        return caller.post(f"/api/agents/{agent.pk}/generate", body, Idempotency_Key="1").body["runId"]

    runs = [ask(caller) for caller in callers]

    assert len({*runs}) == len(callers)
    assert [ask(caller) for caller in callers] == runs
    assert (
        Caller(api_key(owner))
        .post(f"/api/agents/{agent.pk}/generate", {"messages": "Hello"}, Idempotency_Key="1")
        .body["runId"]
        == runs[3]
    )


def test_a_service_names_the_resource_or_lists_all_of_its_realm(service):
    assert service.get("/api/memory/threads").body["total"] == 1
    assert service.get("/api/memory/threads?resourceId=bob").body["total"] == 0
    assert service.post("/api/memory/threads", {}).body["code"] == "resource_required"
    assert service.get(f"/api/memory/search?searchQuery={SECRET}").body["code"] == "resource_required"
    context = quote("eyJtYXN0cmFfX3Jlc291cmNlSWQiOiJhbGljZSJ9")  # {"mastra__resourceId": "alice"}
    assert service.get(f"/api/memory/threads?resourceId=bob&requestContext={context}").body["total"] == 0
    assert service.get("/api/memory/threads/t?resourceId=bob").status_code == 403


def test_nobody_is_added_to_a_thread_that_was_deleted_meanwhile(service, monkeypatch):
    read = participants.read_participant

    def read_slowly(thread, body):
        member_and_texts = read(thread, body)
        Thread.objects.filter(key=thread.key).delete()
        return member_and_texts

    monkeypatch.setattr(participants, "read_participant", read_slowly)
    body = {"username": member("viewer", OWNER).username}

    assert service.post("/api/memory/threads/t/participants", body).status_code == 404


def test_a_participant_reads_and_writes_but_does_not_change_the_thread(service):
    user = member("viewer", OWNER)
    added = service.post("/api/memory/threads/t/participants", {"username": user.username, "functionalRole": "editor"})
    stranger = service.post("/api/memory/threads/t/participants", {"username": UserFactory().username})
    participant = Caller(api_key(user))

    assert (added.status_code, stranger.status_code) == (201, 400)
    assert SECRET in str(participant.get("/api/memory/threads/t/messages").body)
    text = {"threadId": "t", "role": "user", "content": "I am here too."}
    saved = participant.post("/api/memory/save-messages", {"messages": [text]})
    assert saved.body["messages"][0]["author"] == {"id": user.pk, "name": user.username}
    for method, path, body in (
        ("PATCH", "", {"title": "Mine"}),
        ("DELETE", "", None),
        ("POST", "/clone", {}),
        ("POST", "/transfer", {"resourceId": "x"}),
        ("POST", "/participants", {"username": user.username}),
    ):
        assert participant.call(method, f"/api/memory/threads/t{path}", body).status_code == 403
    service.delete(f"/api/memory/threads/t/participants/{user.pk}")
    assert participant.get("/api/memory/threads/t").status_code == 404


def test_a_participant_who_names_another_resource_has_a_thread_of_that_resource(service):
    """Otherwise whoever adds somebody would read what that one writes under the same key for others."""
    user = member("viewer", OWNER)
    service.post("/api/memory/threads/t/participants", {"username": user.username})
    participant, theirs = Caller(api_key(user)), Thread.objects.get(key="t")

    def resource_of(query=""):
        answer = participant.get(f"/api/memory/threads/t{query}")
        return answer.body["resourceId"] if answer.status_code == 200 else answer.status_code

    before = resource_of(), resource_of(f"?resourceId={theirs.resource_key}"), resource_of("?resourceId=mine")
    created = open_thread(memory_caller(user), "t", "mine")
    after = resource_of(), resource_of(f"?resourceId={theirs.resource_key}"), resource_of("?resourceId=mine")

    assert created.pk != theirs.pk
    assert before == (theirs.resource_key, theirs.resource_key, 404)
    assert after == ("mine", theirs.resource_key, "mine")
    assert open_thread(memory_caller(user), "t", theirs.resource_key) == theirs
    assert resource_of("?resourceId=third") == 403
