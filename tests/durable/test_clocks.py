"""Processes whose clocks are a minute ahead or behind: leases, waiting calls, decisions and their streams."""

from datetime import timedelta

import pytest
from django.db.models.functions import Now
from django.utils import timezone

from runs_app.approvals.expiry import expire_calls
from runs_app.engine import leases, reaper, run_ends
from runs_app.events.decided_calls import suspension_number
from runs_app.models import AgentRun, PendingCall
from tests.durable.decisions import settle, wait_for_suspension
from tests.durable.test_approval import start as start_refund
from tests.factories import AgentFactory, member
from tests.runs import LONG, SLOW, start_run, wait_for_end, wait_for_text

pytestmark = pytest.mark.usefixtures("idle_engine", "planned")


@pytest.fixture
def set_clock(monkeypatch):
    """Return a function that sets the clock of this process, but not that of the database, by so many seconds."""
    right_time = timezone.now

    def set_by(seconds):
        monkeypatch.setattr(timezone, "now", lambda: right_time() + timedelta(seconds=seconds))

    return set_by


def test_a_process_with_a_fast_clock_ends_no_run_of_another_one(set_clock):
    run = wait_for_text(start_run(AgentFactory(model=SLOW), member("editor"), LONG, options={"durable": False}))

    set_clock(60)

    assert run_ends.end_lost_runs() == 0
    assert not run_ends.end_lost_run(run.pk)


def test_a_run_that_was_started_with_a_slow_clock_is_not_lost(set_clock):
    set_clock(-60)
    run = start_run(AgentFactory(model=SLOW), member("editor"), LONG, options={"durable": False})
    set_clock(0)

    assert not run_ends.end_lost_run(run.pk)


@pytest.mark.parametrize("seconds", [-60, 60])
def test_a_durable_run_is_taken_over_by_the_clock_of_the_database(set_clock, seconds):
    agent = AgentFactory()
    columns = {"input": {}, "is_durable": True, "status": "queued"}
    run = AgentRun.objects.create(agent=agent, agent_key=agent.pk, **columns)
    set_clock(seconds)
    leases.claim(run.pk, "there:1:a")
    set_clock(0)
    assert (reaper.lost_runs(), leases.claim(run.pk, "there:2:b")) == ([], None)

    set_clock(seconds)
    assert (reaper.lost_runs(), leases.claim(run.pk, "there:2:b")) == ([], None)
    AgentRun.objects.update(lease_until=Now() - timedelta(seconds=1))

    assert [lost.pk for lost in reaper.lost_runs()] == [run.pk]


@pytest.mark.parametrize("seconds", [-3600, 3600])
def test_a_queued_run_whose_message_is_lost_is_taken_by_every_clock(seconds):
    agent, created_at = AgentFactory(), timezone.now() + timedelta(seconds=seconds)
    columns = {"input": {}, "is_durable": True, "status": "queued", "created_at": created_at}
    run = AgentRun.objects.create(agent=agent, agent_key=agent.pk, **columns)

    assert [run_id for run_id, _ in reaper.untaken_runs()] == [run.pk]


@pytest.mark.parametrize("seconds", [-60, 60])
def test_a_call_does_not_expire_by_the_clock_of_another_process(settings, set_clock, seconds):
    run = wait_for_suspension(start_refund())
    soon = timezone.now() + timedelta(seconds=30)
    PendingCall.objects.update(expires_at=soon)
    AgentRun.objects.filter(pk=run.pk).update(expires_at=soon)
    set_clock(seconds)

    assert expire_calls() == 0
    assert settle(run, "approve").state == "approved"
    assert wait_for_end(run).status == "succeeded"


@pytest.mark.parametrize("seconds", [-60, 60])
def test_a_call_waits_as_long_as_its_tool_allows(set_clock, seconds):
    set_clock(seconds)
    wait_for_suspension(start_refund())
    set_clock(0)

    call = PendingCall.objects.get()
    assert abs(call.created_at - timezone.now()) < timedelta(seconds=30)
    assert call.expires_at - call.created_at == timedelta(days=7)


@pytest.mark.parametrize("seconds", [-60, 60])
def test_a_stream_after_a_decision_begins_at_the_suspension(set_clock, seconds):
    """The worker that suspends and the process that decides have different clocks."""
    plan = [[["refund", {"order": "A", "amount": 1}]], [["refund", {"order": "B", "amount": 2}]], "Done."]
    set_clock(seconds)
    run = wait_for_suspension(start_refund(plan))
    set_clock(0)
    first = settle(run, "approve")
    suspended = run.events.get(type="suspended").number
    set_clock(seconds)
    wait_for_suspension(run, 1)
    set_clock(0)
    settle(run, "approve")
    wait_for_end(run)

    assert suspension_number(run, first) == suspended
    assert suspension_number(run, PendingCall.objects.get(segment=1)) > suspended
