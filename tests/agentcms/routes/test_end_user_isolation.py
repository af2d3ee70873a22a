"""Isolation of the conversations of an end user: every route of runs and conversations × who calls it.

`READABLE` is the table of right answers. What a kind of caller may not read answers as if it did not exist, with as
many queries, because the time of an answer must not tell either.
"""

import json
import re
import uuid

import pytest
from django.db import connection, transaction
from django.db.models import Min
from django.test import Client
from django.test.utils import CaptureQueriesContext

from access_app.models import ApiKey, Membership
from memory_app.history.threads import get_or_create_resource
from memory_app.models import Message, Observation, Participant, Thread
from memory_app.realms import memory_caller
from memory_app.working import values
from runs_app.models import AgentRun, BackgroundTask, PendingCall, RunStep
from tests.factories import AgentFactory, api_key, member
from tests.memory_app.conftest import add_thread
from tests.routes import routes_of
from tests.runs_app.factories import PendingCallFactory, RunFactory

pytestmark = pytest.mark.django_db

TEAM = "support"
# The texts of the scene, by what they are part of.
AGENT, CONVERSATION, MEMORY, OBSERVED, RUN, CALL = (
    "ochre",
    "turquoise",
    "aquamarine",
    "vermilion",
    "crimson",
    "magenta",
)
TEXTS = {AGENT, CONVERSATION, MEMORY, OBSERVED, RUN, CALL}
# What each kind of caller may read: through the API, and on pages. A bound key opens no pages.
READABLE = {
    "service": ({AGENT, CONVERSATION, MEMORY, OBSERVED, RUN, CALL}, None),
    "bound to alice": ({AGENT, CONVERSATION, MEMORY, OBSERVED, RUN, CALL}, None),
    "bound to bob": ({AGENT}, None),
    "bound to bob in the realm of the user": ({AGENT}, None),
    "user of the service": ({AGENT}, set()),
    "removed user of the service": (set(), set()),
    "service with a removed user": (set(), None),
    "publisher": ({AGENT, RUN, CALL}, {AGENT, CONVERSATION, MEMORY, OBSERVED, RUN, CALL}),
    "editor": ({AGENT}, set()),
    "viewer": ({AGENT}, set()),
    "participant": ({AGENT, CONVERSATION, OBSERVED}, {CONVERSATION, OBSERVED}),
    "former participant": ({AGENT}, set()),
}
# The rows that each kind of caller may change, if not none.
CHANGEABLE = {
    "service": {"thread", "messages", "memory", "runs", "calls"},
    "bound to alice": {"thread", "messages", "memory", "runs", "calls"},
    "publisher": {"runs", "calls"},
    "participant": {"messages", "runs", "calls"},  # an editor stops the run of the conversation, whose calls end
}
ATTEMPTS = 3
READING = ("SELECT", "SAVEPOINT", "RELEASE SAVEPOINT", "ROLLBACK TO SAVEPOINT")
STRANGERS = [kind for kind in READABLE if kind not in ("service", "bound to alice")]
# The rows of the scene: the text that only their readers see, and the parameters of routes and bodies that name them.
GROUPS = {
    CONVERSATION: ("thread_id", "key", "message_id", "resource_id"),
    RUN: ("run_id",),
    CALL: ("call_id", "approval_id", "task_id", "tool_call_id"),
}
UUIDS = ("run_id", "call_id", "approval_id", "task_id")
FORBIDDEN = "bound to bob"  # in the realm of the thread, so that it answers 403

# What differs between two answers that are alike: new IDs and times.
UUID_LENGTH = 36
VARYING = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f-]{17}|\d{4}-\d\d-\d\dT[0-9:.]+Z")
ROUTES = [route for route in routes_of("memory_app", "runs_app") if not route.name.startswith("admin:")]
NAMED = {"threadId": "{thread_id}", "resourceId": "{resource_id}", "runId": "{run_id}", "agentId": "{agent_id}"}
SIGNAL = {"ifIdle": {"behavior": "persist"}, **NAMED}
SAVED = {"messages": [{"threadId": "{thread_id}", "resourceId": "{resource_id}", "role": "user", "content": "x"}]}
DECISION = {**NAMED, "toolCallId": "{tool_call_id}", "resumeData": {}, "approved": True}
BODIES = {
    **{route.name: DECISION for route in ROUTES if route.module == "runs_app.api.decisions"},
    "api-approval": {"decision": "decline"},
    "api-signals": {"signal": {"type": "notification", "contents": "x"}, **SIGNAL},
    "api-send-message": {"message": "x", **SIGNAL},
    "api-queue-message": {"message": "x", **SIGNAL},
    "api-save-messages": SAVED,
    "api-network-save-messages": SAVED,
    "api-delete-messages": {"messageIds": ["{message_id}"]},
    "api-network-delete-messages": {"messageIds": ["{message_id}"]},
    "api-thread-working-memory": {"workingMemory": "x"},
    "api-thread": {"title": "x"},
    "api-thread-transfer": {"resourceId": "x"},
    "api-thread-participants": {"username": "nobody"},
}
QUERY = "threadId={thread_id}&resourceId={resource_id}&agentId={agent_id}&searchQuery=t&realm=osupport"
STREAMS = ("api-subscribe", "api-background-task-stream")  # never end
# They wait for what the run does next, and no worker runs here. Two other routes decide the same call.
WAIT_FOR_RUN = [
    route.name
    for route in ROUTES
    if route.module == "runs_app.api.decisions" and route.name not in ("api-approval", "api-send-tool-approval")
]


@pytest.fixture
def host():
    return member("editor", TEAM, username="host")


@pytest.fixture
def scene(host):
    """Return the parameters of routes that lead to the conversation of alice, an end user of a service."""
    host.api_key = ApiKey.objects.issue(host, realm_owner=TEAM)[0]
    names = make_scene(host, "alice", TEAM)
    del host.api_key
    return names


@pytest.fixture
def private_scene(host):
    """Return the parameters of routes that lead to the conversation that the user of the service has alone."""
    return make_scene(host, f"u{host.pk}", None)


def make_scene(host, resource, realm_owner):
    agent = AgentFactory(
        id="concierge", owner_id=TEAM, instructions=AGENT, memory={"options": {"workingMemory": True}}
    )
    thread = add_thread(
        host, "room", resource, [("user", CONVERSATION)], agent=agent, agent_key="concierge", title=CONVERSATION
    )
    values.replace_text(thread.resource, MEMORY, values.Origin())
    get_or_create_resource(memory_caller(host), "bob")
    Observation.objects.create(
        thread=thread, first=1, last=1, text=OBSERVED, tokens=1, message_tokens=1, is_active=True
    )
    columns = {"agent": agent, "requested_by": host, "realm_owner": realm_owner}
    columns |= {"thread": thread, "resource": thread.resource}
    run = RunFactory(prompt=RUN, output=RUN, **columns)
    run.remembered = {"messages": 1, "workingMemory": {"scope": "resource", "revision": 1}}
    run.save()
    RunStep.objects.create(run=run, key="0/c/1", kind="capability", state="done", result={"text": CALL})
    waiting = RunFactory(suspended=True, chunks=[("tool-call", {"toolName": CALL, "toolCallId": "c"})], **columns)
    call = PendingCallFactory(run=waiting, arguments={"text": CALL}, call_id=CALL)
    task = BackgroundTask.objects.create(
        run=run, tool=CALL, timeout_ms=1000, agent_key="concierge", owner_id=TEAM, call_key="c1", call_id="c1"
    )
    return {
        "agent_id": agent.pk,
        "thread_id": thread.key,
        "key": thread.key,
        "message_id": Message.objects.get().key,
        "resource_id": resource,
        "run_id": run.pk,
        "call_id": call.pk,
        "tool_call_id": CALL,
        "approval_id": call.pk,
        "task_id": task.pk,
        "user_id": host.pk,
        "input_id": 0,
        "permission_id": 0,
        "revision": 0,
    }


def credentials(kind, host):
    """Return the API key of a kind of caller, and its user for the pages."""
    if kind.startswith("service"):
        if kind.endswith("removed user"):
            Membership.objects.filter(user=host).delete()
        return api_key(host, realm_owner=TEAM), None
    if kind.startswith("bound to"):
        realm = None if kind.endswith("of the user") else TEAM
        return api_key(host, realm_owner=realm, resource=kind.split()[2]), None
    if "user of the service" in kind:
        if kind.startswith("removed"):
            Membership.objects.filter(user=host).delete()
        return api_key(host), host
    user = member(kind if kind in ("publisher", "viewer") else "editor", TEAM, username="stranger")
    if "participant" in kind:
        participant = Participant.objects.create(thread=Thread.objects.get(), user=user, name="Guest")
        if kind.startswith("former"):
            participant.delete()
    return api_key(user), user


class Answer:
    """An answer, the number of its queries, and the rows of the conversation that it changed. It is undone."""

    def __init__(self, client, route, method, names, before=None):
        """Send a request. `before` are the rows of the conversation, with which it compares those after it."""
        body = json.dumps(BODIES.get(route.name, NAMED if method == "POST" else {}))
        address, query = route.address(names), QUERY
        for name, value in names.items():
            body, query = (text.replace(f"{{{name}}}", str(value)) for text in (body, query))
        with transaction.atomic():
            with CaptureQueriesContext(connection) as queries:
                answer = client.generic(method, f"{address}?{query}", body, content_type="application/json")
                content = answer.streaming_content if answer.streaming else iter([answer.content])
                if answer.streaming and route.name in STREAMS:
                    text = next(content)
                    answer._iterator.close()  # as the test client closes it: without the connection to the database
                else:
                    text = b"".join(content)
            has_written = any(not query["sql"].startswith(READING) for query in queries)
            after = state() if before and has_written else before or {}
            self.changed = {name for name, rows in after.items() if rows != before[name]}
            transaction.set_rollback(True)
        self.status, self.queries, self.text = answer.status_code, len(queries), text.decode()
        values = {str(value) for value in names.values()} - {*TEXTS}
        self.hide(value for value in values if len(value) >= UUID_LENGTH)
        self.text = VARYING.sub("VARYING", self.text)
        self.hide(value for value in values if 2 < len(value) < UUID_LENGTH)  # a UUID may contain a short name

    def hide(self, values):
        for value in sorted(values, key=len, reverse=True):
            self.text = self.text.replace(value, "ID")

    @property
    def texts(self):
        return {text for text in TEXTS if text in self.text}


def state():
    """Return the rows of the conversation that somebody else must not change."""
    threads = Thread.objects.filter(pk=Thread.objects.aggregate(first=Min("pk"))["first"])  # that of the scene
    querysets = {
        "thread": threads.values("title", "resource_key", "working_memory", "participants__user"),
        "messages": Message.objects.filter(thread__in=threads).values("key", "text"),
        "memory": threads.values("resource__working_memory", "resource__working_revision"),
        "runs": AgentRun.objects.filter(thread__in=threads).values("status", "cancel_requested_at"),
        "calls": PendingCall.objects.values("state"),
    }
    return {name: [*queryset.order_by("pk")] for name, queryset in querysets.items()}


def absent(names, kind, route):
    """Return names in which those of rows that the kind may not read are of no row."""
    readable = READABLE[kind][0 if route.is_api else 1]
    if RUN in readable and route.module.startswith("runs_app"):
        readable = readable | {CONVERSATION}  # a run says in which thread it is
    hidden = [name for text, members in GROUPS.items() if text not in readable for name in members]
    return {**names, **{name: uuid.UUID(int=7) if name in UUIDS else "none" for name in hidden}}


def calls(kind, host, readable=None):
    """Yield the routes, methods and clients of a kind of caller, without those that would wait for its run."""
    readable = READABLE[kind][0] if readable is None else readable
    key, user = credentials(kind, host)
    clients = {True: Client(headers={"Authorization": f"Bearer {key}"}), False: Client()}
    if user is not None:
        clients[False].force_login(user)
    for route in ROUTES:
        if route.name in WAIT_FOR_RUN and CALL in readable:
            continue
        if route.is_api or user is not None:
            yield from ((route, method, clients[route.is_api]) for method in route.methods)


@pytest.mark.parametrize("kind", READABLE)
def test_each_kind_of_caller_reads_and_changes_what_the_table_says(kind, host, scene):
    seen, changed, compared = {True: set(), False: set()}, set(), 0
    requests = [*calls(kind, host)]
    before = state()
    for route, method, client in requests:
        answer = Answer(client, route, method, scene, before)

        assert answer.status < 500, (method, route.name, answer.text[:300])
        allowed = READABLE[kind][0 if route.is_api else 1]
        assert answer.texts <= allowed, (method, route.name, answer.status, answer.texts - allowed)
        assert answer.changed <= CHANGEABLE.get(kind, set()), (method, route.name, answer.status)
        seen[route.is_api] |= answer.texts
        changed |= answer.changed
        if kind in STRANGERS:
            compared += is_answered_as_if_it_did_not_exist(kind, client, route, method, scene, answer)
    assert changed == CHANGEABLE.get(kind, set())
    assert (seen[True], seen[False]) == (READABLE[kind][0], READABLE[kind][1] or set())
    assert compared > 25 or kind not in STRANGERS


def is_answered_as_if_it_did_not_exist(kind, client, route, method, scene, foreign):
    """Compare an answer about a row with that about no row. Return False if the kind is told that it is forbidden."""
    names = absent(scene, kind, route)
    nothing = Answer(client, route, method, names)
    for _ in range(ATTEMPTS):
        if foreign.queries == nothing.queries:
            break
        # One of them filled a cache, or read again what a cache keeps for seconds.
        nothing, foreign = Answer(client, route, method, names), Answer(client, route, method, scene)
    case = (method, route.name, foreign.status, foreign.text[:300], nothing.status, nothing.text[:300])
    if kind == FORBIDDEN and foreign.status == 403:
        assert not foreign.texts, case
        return False
    assert foreign.status == nothing.status, case
    assert foreign.queries == nothing.queries, case
    assert foreign.text == nothing.text or not route.is_api, case
    return True


@pytest.mark.parametrize("kind", ["service", "bound to alice", "bound to bob in the realm of the user"])
def test_an_api_key_for_others_reads_nothing_that_its_user_has_alone(kind, host, private_scene):
    before = state()
    for route, method, client in calls(kind, host, readable={AGENT}):
        answer = Answer(client, route, method, private_scene, before)

        assert answer.status < 500, (method, route.name, answer.text[:300])
        assert answer.texts <= {AGENT}, (method, route.name, answer.status, answer.texts)
        assert not answer.changed, (method, route.name, answer.status, answer.changed)
