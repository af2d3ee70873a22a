"""The runs of an agent that wait for people, and their streams."""

from datetime import UTC, datetime, timedelta

import pytest
from django.utils import timezone

from memory_app.models import Thread
from runs_app.approvals.lookup import find_call
from runs_app.events import streams
from runs_app.models import AgentRun, RunEvent
from tests.api_client import Caller
from tests.factories import AgentFactory, api_key, archived_agent, member
from tests.runs_app.factories import PendingCallFactory, RunFactory

pytestmark = pytest.mark.django_db

PATH = "/api/agents/concierge/suspended-runs"


@pytest.fixture
def user():
    return member("editor", username="eddie")


@pytest.fixture
def editor(user):
    return Caller(api_key(user))


@pytest.fixture
def agent():
    return AgentFactory(id="concierge")


@pytest.fixture
def suspended(agent, user):
    """Return a function that creates a waiting run of the agent."""

    def create(thread=("", ""), age=1, **fields):
        since = timezone.now() - timedelta(hours=age)
        key, resource = thread
        conversation = (
            Thread.objects.create(user=user, agent_key=agent.pk, key=key, resource_key=resource) if key else None
        )
        options = {"agent": agent, "requested_by": user, "thread": conversation, "chunks": [], **fields}
        return RunFactory(suspended=True, suspended_at=since, **options)

    return create


def run_ids(answer):
    return [run["runId"] for run in answer.body["runs"]]


def test_a_suspended_run_names_its_waiting_calls(editor, suspended):
    run = suspended(("t1", "ann"))
    PendingCallFactory(run=run, call_id="a")
    PendingCallFactory(run=run, call_id="b", kind="suspend", payload={"question": "Which one?"})
    PendingCallFactory(run=run, call_id="c", state="approved")

    body = editor.get(PATH).body

    assert body["total"] == 1
    [listed] = body["runs"]
    refund = {"toolName": "refund", "args": {"order": "A-17", "amount": 250}}
    assert listed == {
        "runId": str(run.pk),
        "status": "suspended",
        "threadId": "t1",
        "resourceId": "ann",
        "suspendedAt": listed["suspendedAt"],
        "toolCalls": [
            {"toolCallId": "a", **refund, "requiresApproval": True},
            {"toolCallId": "b", **refund, "requiresApproval": False, "suspendPayload": {"question": "Which one?"}},
        ],
    }


def test_calls_of_sub_agents_are_those_of_the_run(editor, suspended, agent):
    run = suspended()
    child = RunFactory(agent=AgentFactory(), parent=run, suspended=True, chunks=[])
    PendingCallFactory(run=run, call_id="own", kind="child")
    PendingCallFactory(run=child, call_id="leaf", root_id=run.pk)

    [listed] = editor.get(PATH).body["runs"]

    assert "threadId" not in listed
    assert [call["toolCallId"] for call in listed["toolCalls"]] == ["leaf"]


def test_each_call_has_the_id_by_which_it_can_be_decided(editor, suspended):
    """Some servers number the calls of each answer, so a sub-agent has calls with the IDs of those of its run."""
    run = suspended()
    child = RunFactory(agent=AgentFactory(), parent=run, root_id=run.pk, suspended=True, chunks=[])
    own = PendingCallFactory(run=run, call_id="c0")
    PendingCallFactory(run=run, call_id="c1", kind="child", payload={"childRunId": str(child.pk)})
    leaf = PendingCallFactory(run=child, call_id="c0")

    [listed] = editor.get(PATH).body["runs"]

    assert [find_call(run, call["toolCallId"]) for call in listed["toolCalls"]] == [own, leaf]


def test_the_list_is_filtered_and_the_latest_comes_first(editor, suspended, agent, user):
    old, new = suspended(("t1", "ann"), age=50), suspended(("t2", "bob"), age=1)
    RunFactory(agent=agent, requested_by=user)  # is finished
    RunFactory(requested_by=user, suspended=True)  # of another agent
    yesterday = (timezone.now() - timedelta(hours=24)).strftime("%Y-%m-%dT%H:%M:%S.000Z")

    assert run_ids(editor.get(PATH)) == [str(new.pk), str(old.pk)]
    assert run_ids(editor.get(f"{PATH}?threadId=t1")) == [str(old.pk)]
    assert run_ids(editor.get(f"{PATH}?resourceId=bob")) == [str(new.pk)]
    assert run_ids(editor.get(f"{PATH}?threadId=t1&resourceId=bob")) == []
    assert run_ids(editor.get(f"{PATH}?fromDate={yesterday}")) == [str(new.pk)]
    assert run_ids(editor.get(f"{PATH}?toDate={yesterday}")) == [str(old.pk)]
    page = editor.get(f"{PATH}?perPage=1&page=1")
    assert (run_ids(page), page.body["total"]) == ([str(old.pk)], 2)


def test_the_period_includes_both_of_its_ends(editor, suspended):
    """As in Mastra. The times of a response have milliseconds, and the database has microseconds."""
    run = suspended()
    AgentRun.objects.update(suspended_at=datetime(2026, 1, 2, 3, 4, 5, 678901, UTC))
    [listed] = editor.get(PATH).body["runs"]
    time = listed["suspendedAt"]

    assert run_ids(editor.get(f"{PATH}?fromDate={time}&toDate={time}")) == [str(run.pk)]
    assert run_ids(editor.get(f"{PATH}?toDate=2026-01-02T03:04:05.677Z")) == []


def test_invalid_filters_are_named(editor, agent):
    answer = editor.get(f"{PATH}?fromDate=yesterday")

    assert (answer.status_code, answer.body["issues"][0]["field"]) == (400, "fromDate")


def test_strangers_and_former_members_see_no_runs(editor, suspended, user):
    suspended()

    assert Caller(api_key(member("manager", "elsewhere"))).get(PATH).status_code == 404
    assert run_ids(Caller(api_key(member("editor"))).get(PATH)) == []
    assert len(run_ids(Caller(api_key(member("publisher"))).get(PATH))) == 1
    assert len(run_ids(Caller(api_key(user, "viewer")).get(PATH))) == 1
    user.memberships.all().delete()
    assert editor.get(PATH).status_code == 404


def test_agents_in_code_and_archived_agents_have_a_list(editor):
    archived_agent("old")

    assert editor.get("/api/agents/proofreader/suspended-runs").body["runs"] == []
    assert editor.get("/api/agents/old/suspended-runs").body["runs"] == []


def test_the_list_takes_a_fixed_number_of_queries(editor, suspended, django_assert_num_queries):
    editor.get(PATH)
    for number in range(3):
        PendingCallFactory(run=suspended((f"t{number}", "")))

    with django_assert_num_queries(5):
        assert len(editor.get(PATH).body["runs"]) == 3


# --- Streams


@pytest.fixture
def waiting_run(idle_engine, suspended):
    """Return a run with three events, which waits for people."""
    run = suspended()
    for number, kind in enumerate(("start", "tool-call-approval", "suspended"), 1):
        RunEvent.objects.create(run=run, number=number, type="chunk", data={"type": kind, "payload": {}})
    PendingCallFactory(run=run)
    return run


def test_a_stream_ends_while_the_run_waits(waiting_run):
    events = [event for batch in streams.follow_events(waiting_run.pk) for event in batch]

    assert [(number, data["type"]) for number, data in events] == [
        (1, "start"),
        (2, "tool-call-approval"),
        (3, "suspended"),
    ]
    assert [*streams.follow_events(waiting_run.pk, 3)] == []


def test_a_stream_goes_on_after_a_decision(waiting_run):
    type(waiting_run).objects.filter(pk=waiting_run.pk).update(status="queued", suspended_at=None, segment=1)
    batches = streams.follow_events(waiting_run.pk)
    next(batches)
    RunEvent.objects.create(run=waiting_run, number=4, type="finish", data={"type": "finish", "payload": {}})
    streams.notifier.wake(str(waiting_run.pk))

    assert [number for batch in batches for number, _ in batch] == [4]


def test_generate_does_not_wait_for_people(waiting_run):
    assert streams.wait_until_over(waiting_run.pk).status == "suspended"
