"""Ends, continuations and leases of runs while there are other runs, which stay as they are."""

from datetime import timedelta

import pytest
from django.utils import timezone

from agentcms.ids import uuid7
from runs_app.approvals import expiry, resuming
from runs_app.approvals.lookup import CHILD_RUN_ID, TASK_ID
from runs_app.engine import leases, run_ends
from runs_app.models import AgentRun, BackgroundTask, PendingCall
from tests.runs_app.factories import PendingCallFactory, RunFactory

pytestmark = pytest.mark.django_db


def executed(holder, **fields):
    """Return a durable run that a process executes."""
    until = timezone.now() + timedelta(seconds=5)
    return RunFactory(open=True, is_durable=True, holder=holder, fence=1, lease_until=until, chunks=[], **fields)


def waiting_call(payload, run=None):
    """Return a call that waits for a child run or a task, of a run or else of a new one."""
    run = run or RunFactory(suspended=True, chunks=[])
    return PendingCallFactory(run=run, kind=PendingCall.Kind.CHILD, payload=payload)


def states(*calls):
    return [PendingCall.objects.get(pk=call.pk).state for call in calls]


def statuses(*runs):
    return [AgentRun.objects.get(pk=run.pk).status for run in runs]


def is_asked_to_stop(run):
    return AgentRun.objects.get(pk=run.pk).cancel_requested_at is not None


def test_the_calls_of_a_cancelled_run_are_cancelled():
    call, other = PendingCallFactory(), PendingCallFactory()

    run_ends.cancel_run(call.run_id)

    assert states(call, other) == ["cancelled", "open"]
    assert statuses(call.run, other.run) == ["cancelled", "suspended"]


def test_a_run_continues_when_its_own_call_is_decided():
    call, other = PendingCallFactory(), PendingCallFactory()
    PendingCall.objects.filter(pk=call.pk).update(state=PendingCall.State.APPROVED)

    assert resuming.continue_if_decided(call.run)
    assert not resuming.continue_if_decided(other.run)
    assert statuses(call.run, other.run) == ["queued", "suspended"]


def test_a_run_that_has_ended_does_not_continue():
    run = RunFactory(chunks=[])

    resuming.continue_if_decided(run)

    assert statuses(run) == ["succeeded"]


def test_the_task_of_a_child_run_works_again_with_it():
    parent = RunFactory(chunks=[])
    children = [RunFactory(suspended=True, parent=parent, root_id=parent.pk, chunks=[]) for _ in range(2)]
    columns = {"run": parent, "tool": "agent-helper", "timeout_ms": 1000, "status": "suspended"}
    tasks = [
        BackgroundTask.objects.create(**columns, call_id=str(child.pk), call_key=str(child.pk), child_run_id=child.pk)
        for child in children
    ]

    resuming.continue_if_decided(children[0])

    assert [BackgroundTask.objects.get(pk=task.pk).status for task in tasks] == ["running", "suspended"]


def test_only_the_expired_calls_of_a_run_are_declined():
    now = timezone.now()
    expired = PendingCallFactory(expires_at=now - timedelta(minutes=1))
    later = PendingCallFactory(run=expired.run, expires_at=now + timedelta(hours=1))
    unlimited = PendingCallFactory(run=expired.run)

    assert expiry.expire_calls_of(expired.run_id) == 1
    assert states(expired, later, unlimited) == ["expired", "open", "open"]
    assert statuses(expired.run) == ["suspended"]


@pytest.mark.parametrize(
    ("name", "settle"),
    [(CHILD_RUN_ID, resuming.settle_parent_call), (TASK_ID, resuming.settle_task_call)],
    ids=["child run", "background task"],
)
def test_a_run_continues_when_all_have_ended_for_which_it_waits(name, settle):
    keys = [uuid7(), uuid7()]
    first = waiting_call({name: str(keys[0])})
    second = waiting_call({name: str(keys[1])}, first.run)

    settle(keys[0], first.run_id)
    one_ended = states(first, second), statuses(first.run)
    settle(keys[1], first.run_id)

    assert one_ended == (["resumed", "open"], ["suspended"])
    assert (states(first, second), statuses(first.run)) == (["resumed", "resumed"], ["queued"])


def test_a_run_that_failed_cancels_its_own_child_runs():
    parents = [RunFactory(chunks=[]), RunFactory(chunks=[])]
    children = [executed("a", parent=parent, root_id=parent.pk) for parent in parents]

    run_ends.cancel_children(parents[0].pk)

    assert [*map(is_asked_to_stop, children)] == [True, False]


def test_only_child_runs_whose_parents_have_ended_are_abandoned():
    ended, active = RunFactory(chunks=[]), executed("a")
    waiting = [RunFactory(suspended=True, parent=run, root_id=run.pk, chunks=[]) for run in (ended, active)]
    working = [executed("b", parent=run, root_id=run.pk) for run in (ended, active)]

    run_ends.cancel_abandoned_children()

    assert statuses(*waiting) == ["cancelled", "suspended"]
    assert [*map(is_asked_to_stop, working)] == [True, False]


@pytest.mark.parametrize("claim", [{"holder": "b"}, {"fence": 2}])
def test_a_run_that_another_process_has_claimed_is_not_ended_as_unstarted(claim):
    run, claimed = executed("a"), executed("a")
    AgentRun.objects.filter(pk=claimed.pk).update(**claim)

    run_ends.cancel_unstarted(run)
    run_ends.cancel_unstarted(claimed)

    assert statuses(run, claimed) == ["cancelled", "running"]


def test_a_lost_run_is_queued_for_the_claim_that_was_lost():
    run = executed("a")

    assert not run_ends.requeue_lost_run(run.pk, run.fence + 1)
    assert statuses(run) == ["running"]
    assert run_ends.requeue_lost_run(run.pk, run.fence)
    assert statuses(run) == ["queued"]


def test_a_process_renews_and_reads_its_own_runs():
    own, other = executed("a"), executed("b")

    assert leases.renew("a", [own.pk, other.pk]) == {own.pk: 1}
    assert leases.get_claimed(own.pk, "a") == own
    assert leases.get_claimed(other.pk, "a") is None
    assert AgentRun.objects.filter(pk=other.pk, lease_until=other.lease_until).exists()


def test_a_run_that_a_process_executes_is_not_claimed():
    run = executed("a")

    assert leases.claim(run.pk, "b") is None
    assert AgentRun.objects.get(pk=run.pk).holder == "a"


def test_the_oldest_queued_run_is_claimed_unless_its_parent_executes_it():
    queued = {"open": True, "status": "queued", "is_durable": True, "chunks": []}
    parent = executed("b")
    RunFactory(**queued, parent=parent, root_id=parent.pk, created_at=timezone.now() - timedelta(hours=3))
    old = RunFactory(**queued, created_at=timezone.now() - timedelta(hours=2))
    new = RunFactory(**queued)

    claimed = [leases.claim_oldest("a", [new.pk]), leases.claim_oldest("a", [new.pk]), leases.claim_oldest("a", [])]

    assert claimed == [old, None, new]
