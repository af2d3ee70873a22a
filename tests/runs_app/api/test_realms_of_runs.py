"""The realm of a run: what an API key for end users started is not read with other credentials of its user."""

from importlib import import_module

import pytest
from django.apps import apps

from jobs_app.models import Job
from jobs_app.runner import run_claimed
from memory_app.models import Participant, Thread
from runs_app import tasks  # noqa: F401  registers the handlers
from runs_app.models import AgentRun, PendingCall
from runs_app.runs_of_resources import runs_of, user_of
from tests.api_client import Caller
from tests.factories import AgentFactory, api_key, member
from tests.memory_app.conftest import add_thread
from tests.runs import DEMO, wait_for_end
from tests.runs_app.factories import PendingCallFactory, RunFactory

pytestmark = pytest.mark.usefixtures("idle_engine")

OWNER = "support"
ALICE = {"memory": {"thread": "t", "resource": "alice"}}


@pytest.fixture
def user():
    return member("editor", OWNER)


@pytest.fixture
def agent(user):
    AgentFactory(id="helper", name="Helper", owner_id=OWNER, model=DEMO)
    return AgentFactory(id="concierge", owner_id=OWNER, model=DEMO, agents=["helper"])


@pytest.fixture
def service(user, agent):
    return Caller(api_key(user, realm_owner=OWNER))


def ask(caller, text="Hello", **body):
    return caller.post("/api/agents/concierge/generate", {"messages": text, **body}).body["runId"]


def runs_seen_by(caller):
    body = caller.get("/api/runs?children=true").body
    assert body["total"] == len(body["runs"])
    return {run["id"] for run in body["runs"]}


@pytest.mark.parametrize(
    ("realm", "key", "user"),
    [("u12", "u12", 12), ("u12", "u13", None), ("osupport", "osupport", None), ("u²", "u²", None)],
)
def test_the_resource_of_a_user_has_the_name_of_the_realm(realm, key, user):
    assert user_of(realm, key) == user


def test_runs_of_a_service_and_of_its_user_are_apart(service, user):
    plain = Caller(api_key(user))
    of_service = {ask(service), ask(service, **ALICE)}
    of_user = {ask(plain), ask(plain, **ALICE)}

    assert (runs_seen_by(service), runs_seen_by(plain)) == (of_service, of_user)
    assert runs_seen_by(Caller(api_key(member("editor", OWNER), realm_owner=OWNER))) == set()
    assert {plain.get(f"/api/runs/{run}").status_code for run in of_service} == {404}
    assert {service.get(f"/api/runs/{run}").status_code for run in of_user} == {404}
    assert runs_seen_by(Caller(api_key(member("publisher", OWNER)))) == of_service | of_user


def test_the_runs_of_sub_agents_and_woken_runs_are_of_the_same_realm(service, user):
    parent = AgentRun.objects.get(pk=ask(service, "Use agent-helper with Hello", **ALICE))
    target = {"threadId": "t", "resourceId": "alice"}
    sent = service.post("/api/agents/concierge/send-message", {"message": "Blue", **target})
    woken = wait_for_end(AgentRun.objects.get(pk=sent.body["runId"]))

    assert [parent.children.get().realm_owner, woken.realm_owner] == [OWNER, OWNER]
    assert runs_seen_by(Caller(api_key(user))) == set()
    assert runs_seen_by(service) == {str(run) for run in (parent.pk, parent.children.get().pk, woken.pk)}
    parent.children.update(owner_id="sales")
    assert runs_seen_by(service) == {str(parent.pk), str(woken.pk)}


def test_a_participant_reads_the_run_for_which_it_asked_until_leaving_the_thread(service):
    ask(service, **ALICE)
    Thread.objects.update(agent="concierge")
    guest = member("editor", OWNER)
    participant = Participant.objects.create(thread=Thread.objects.get(), user=guest, name="Guest")
    caller = Caller(api_key(guest))

    run = ask(caller, **ALICE)

    assert runs_seen_by(caller) == {run}
    participant.delete()
    assert runs_seen_by(caller) == set()


def test_a_run_without_an_end_user_is_not_among_the_data_of_the_user(service, user):
    ask(service)
    own = ask(Caller(api_key(user)))

    realm = f"u{user.pk}"
    assert [str(run.pk) for run in runs_of(realm, realm)] == [own]


def test_exports_are_of_the_realm_in_which_they_were_asked_for(service, user):
    plain = Caller(api_key(user))
    ask(service, **ALICE)
    ask(plain, **ALICE)
    callers = (service, plain)
    ids = [caller.post("/api/memory/resources/alice/export").body["id"] for caller in callers]
    for job_id in ids:
        run_claimed(job_id)

    for caller, own, other in zip(callers, ids, reversed(ids), strict=True):
        assert [job["id"] for job in caller.get("/api/jobs").body["jobs"]] == [own]
        for path in ("", "/file"):
            assert caller.client.get(f"/api/jobs/{own}{path}").status_code == 200
            assert caller.client.get(f"/api/jobs/{other}{path}").status_code == 404
        assert caller.client.delete(f"/api/jobs/{other}").status_code == 404
    assert Job.objects.count() == 2


def test_the_migration_marks_the_runs_of_conversations_with_end_users(user, agent, monkeypatch):
    migration = import_module("runs_app.migrations.0036_fill_realm_owner_of_runs")
    monkeypatch.setattr(migration, "BATCH_SIZE", 2)
    own = add_thread(user)
    thread = add_thread(user, "room", "alice", agent=agent)
    Thread.objects.filter(pk=thread.pk).update(realm=f"o{OWNER}")
    columns = {"agent": agent, "requested_by": user}
    runs = [RunFactory(thread=thread, **columns) for _ in range(5)]
    others = [RunFactory(thread=own, resource=own.resource, **columns), RunFactory(**columns)]
    PendingCallFactory(run=runs[0])

    migration.fill(apps, None)
    migration.fill(apps, None)  # an interrupted migration is repeated

    marked = AgentRun.objects.filter(realm_owner=OWNER)
    assert {run.pk for run in marked} == {run.pk for run in runs}
    assert AgentRun.objects.filter(realm_owner=None).count() == len(others)
    assert PendingCall.objects.get().realm_owner == OWNER
