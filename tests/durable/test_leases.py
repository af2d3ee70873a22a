"""Leases and fences: which process may execute a run, and what happens to those that may not any more."""

import asyncio
import signal
import threading
import time
from datetime import timedelta

import pytest
from django.db import connection, transaction
from django.utils import timezone

from runs_app.engine import leases, reaper, run_ends, workers
from runs_app.engine.engine import get_engine
from runs_app.engine.journaling.journal import UNKNOWN_OUTCOME_MESSAGE
from runs_app.engine.start import rows
from runs_app.events import writer
from runs_app.events.stream_chunks import build_chunk
from runs_app.models import AgentRun
from tests.durable.conftest import QuietRunner, event_numbers
from tests.durable.test_journal import lose, notes, take_over, wait_for_steps
from tests.durable.test_journal import start as start_here
from tests.factories import AgentFactory, member
from tests.runs import DEMO, chunks, start_run, wait_for_end
from tests.served import wait_until

TWO_CALLS = [[["count", {"number": 0}]], [["count", {"number": 1, "gate": "one"}]], "Done."]


@pytest.fixture
def queued(monkeypatch, idle_engine):
    """Return a queued run that nobody executes."""
    monkeypatch.setattr(rows, "get_runner", QuietRunner)
    return start_run(AgentFactory(model=DEMO), member("editor"), options={"durable": True})


# --- Claims and fences


def test_only_one_process_claims_a_run(queued):
    first, second = leases.claim(queued.pk, "here:1:a"), leases.claim(queued.pk, "there:2:b")

    assert (first.holder, first.fence, first.status) == ("here:1:a", 1, "running")
    assert second is None


def test_the_oldest_run_is_claimed_first(queued):
    newer = start_run(AgentFactory(model=DEMO), member("editor"), options={"durable": True})

    claimed = [leases.claim_oldest("here:1:a", excluded=[]) for _ in range(3)]

    assert [run and run.pk for run in claimed] == [queued.pk, newer.pk, None]


def test_a_claim_after_a_lost_lease_counts_the_lost_process(queued):
    leases.claim(queued.pk, "here:1:a")
    AgentRun.objects.filter(pk=queued.pk).update(lease_until=timezone.now() - timedelta(seconds=1))

    run = leases.claim(queued.pk, "there:2:b")

    assert (run.holder, run.fence, run.attempts) == ("there:2:b", 2, 1)


def test_the_time_for_which_a_lost_process_has_worked_counts(queued):
    """RUN_TIMEOUT bounds the work of all processes together."""
    for seconds, holder in ((100, "here:1:a"), (20, "there:2:b")):
        run = leases.claim(queued.pk, holder)
        began_at = timezone.now() - timedelta(seconds=seconds)
        AgentRun.objects.filter(pk=queued.pk).update(lease_until=timezone.now() - timedelta(milliseconds=1))
        run.claims.update(claimed_at=began_at)
        if run.fence == 1:
            AgentRun.objects.filter(pk=queued.pk).update(started_at=began_at)

    run = leases.claim(queued.pk, "yonder:3:c")

    assert (run.attempts, run.fence) == (2, 3)
    # Each process has renewed its lease for the last time six seconds before it expired.
    assert run.worked_ms / 1000 == pytest.approx(100 - 6 + 20 - 6, abs=2)


def test_a_run_whose_processes_are_lost_ends_by_its_time_limit(planned, idle_engine, settings):
    run = start_here(TWO_CALLS)
    wait_for_steps(run, 1, "started")
    lose(run)
    AgentRun.objects.filter(pk=run.pk).update(worked_ms=(settings.RUN_TIMEOUT + 1) * 1000)

    done = take_over(run)

    assert (done.status, done.error) == (
        "failed",
        f"The run took longer than {settings.RUN_TIMEOUT} seconds and was stopped.",
    )


def test_the_writes_of_an_earlier_claim_are_refused(planned, idle_engine):
    run = start_here(TWO_CALLS)
    wait_for_steps(run, 1, "started")
    count = run.events.count()
    AgentRun.objects.filter(pk=run.pk).update(fence=7)  # as if another claim had the same holder

    get_engine().writer.add(run.pk, build_chunk("text-start", id="late"))
    wait_until(lambda: run.pk not in get_engine().run_tasks, 20, "the end of the task")

    assert run.events.count() == count
    run.refresh_from_db()
    assert (run.status, run.fence) == ("running", 7)


def test_events_that_cannot_be_stored_do_not_end_a_run_of_another_claim(planned, idle_engine, monkeypatch):
    run = start_here(TWO_CALLS)
    wait_for_steps(run, 1, "started")
    AgentRun.objects.filter(pk=run.pk).update(fence=7)  # as if another claim had the same holder

    def refuse(*args, **options):
        raise ValueError("The value cannot be stored.")

    monkeypatch.setattr(writer, "save_snapshots", refuse)
    get_engine().writer.add(run.pk, build_chunk("text-start", id="late"))
    wait_until(lambda: run.pk not in get_engine().run_tasks, 20, "the end of the task")

    run.refresh_from_db()
    assert (run.status, run.error, run.fence) == ("running", "", 7)


def test_a_duplicate_message_does_no_harm(planned, idle_engine):
    run = start_here(TWO_CALLS)
    for _ in range(5):
        get_engine().offer(run.pk)
    wait_for_steps(run, 1, "started")
    for _ in range(5):
        get_engine().offer(run.pk)
    (planned / "one.open").touch()

    done = wait_for_end(run)

    assert (done.status, done.fence) == ("succeeded", 1)
    assert event_numbers(done) == list(range(1, done.last_event_number + 1))


def test_a_run_that_is_offered_while_its_hand_over_is_committed_goes_on(queued, monkeypatch):
    engine = get_engine()
    original, offered = engine.writer._mark_written, []

    def offer_before(snapshots, owned):
        if queued.pk in owned and not offered:
            offered.append(queued.pk)
            engine.offer(queued.pk)
            asyncio.run_coroutine_threadsafe(asyncio.sleep(0.05), engine.loop).result(20)
        original(snapshots, owned)

    monkeypatch.setattr(engine.writer, "_mark_written", offer_before)
    run = leases.claim(queued.pk, engine.holder)
    engine.writer.register_claimed(run, time.monotonic())

    assert engine.writer.hand_over(run.pk, 0).result(20)

    assert offered
    assert wait_for_end(run).status == "succeeded"


def test_a_full_process_takes_a_queued_run_when_a_place_is_free(planned, idle_engine, settings):
    settings.RUNS_PER_WORKER = 1
    first = start_here(TWO_CALLS)
    wait_for_steps(first, 1, "started")
    second = start_here(["Second."])
    assert AgentRun.objects.get(pk=second.pk).status == "queued"

    (planned / "one.open").touch()

    assert wait_for_end(first).status == wait_for_end(second).status == "succeeded"


# --- Cancelling


def test_a_queued_run_is_cancelled_at_once(queued):
    run_ends.cancel_run(queued.pk)

    queued.refresh_from_db()
    assert (queued.status, [chunk["type"] for chunk in chunks(queued)]) == ("cancelled", ["abort"])
    assert leases.claim(queued.pk, "here:1:a") is None


def test_a_lost_run_that_was_cancelled_is_not_continued(queued):
    run = leases.claim(queued.pk, "here:1:a")
    AgentRun.objects.filter(pk=run.pk).update(
        lease_until=timezone.now() - timedelta(seconds=1), cancel_requested_at=timezone.now()
    )

    reaper.reap_once()

    run.refresh_from_db()
    assert run.status == "cancelled"


# --- The reaper


def test_runs_of_lost_leases_and_of_dead_processes_are_queued(queued, monkeypatch):
    dispatched = []
    monkeypatch.setattr(reaper, "get_runner", lambda: type("Runner", (), {"dispatch": dispatched.append}))
    on_this_machine = leases.claim(queued.pk, f"{leases.host_name()}:999999999:a")
    other = start_run(AgentFactory(model=DEMO), member("editor"), options={"durable": True})
    leases.claim(other.pk, "there:999999999:b")

    reaper.reap_once()
    assert dispatched == [on_this_machine.pk]
    AgentRun.objects.filter(pk=other.pk).update(lease_until=timezone.now() - timedelta(seconds=1))
    reaper.reap_once()

    assert dispatched == [on_this_machine.pk, other.pk]
    assert set(AgentRun.objects.values_list("status", "attempts", "holder")) == {("queued", 1, "")}


def test_an_error_with_one_lost_run_holds_up_no_others(queued, monkeypatch):
    monkeypatch.setattr(reaper, "get_runner", lambda: type("Runner", (), {"dispatch": lambda run_id: None}))
    other = start_run(AgentFactory(model=DEMO), member("editor"), options={"durable": True})
    for number, run in enumerate((queued, other)):
        leases.claim(run.pk, f"there:{number}:b")
    AgentRun.objects.update(lease_until=timezone.now() - timedelta(seconds=1))
    AgentRun.objects.filter(pk=queued.pk).update(cancel_requested_at=timezone.now())  # so it ends

    def fail(sender, **kwargs):
        raise ValueError("A receiver of this project is wrong.")

    run_ends.run_ending.connect(fail)
    try:
        reaper.reap_once()
    finally:
        run_ends.run_ending.disconnect(fail)

    assert dict(AgentRun.objects.values_list("pk", "status")) == {queued.pk: "running", other.pk: "queued"}


@pytest.mark.postgres_only  # SQLite locks no rows
def test_a_process_that_stands_still_while_it_writes_holds_up_only_its_run(queued, monkeypatch):
    """A process that the machine suspends in a transaction keeps its locks."""
    monkeypatch.setattr(reaper, "get_runner", lambda: type("Runner", (), {"dispatch": lambda run_id: None}))
    locked = leases.claim(queued.pk, "there:1:b")
    other = start_run(AgentFactory(model=DEMO), member("editor"), options={"durable": True})
    leases.claim(other.pk, "there:2:b")
    AgentRun.objects.update(lease_until=timezone.now() - timedelta(seconds=1))
    has_locked, may_end = threading.Event(), threading.Event()

    def stand_still():
        with transaction.atomic():
            AgentRun.objects.select_for_update().get(pk=locked.pk)
            has_locked.set()
            may_end.wait(30)

    still = threading.Thread(target=lambda: (stand_still(), connection.close()))
    still.start()
    try:
        assert has_locked.wait(10)
        reaper.reap_once()
    finally:
        may_end.set()
        still.join()

    statuses = dict(AgentRun.objects.values_list("pk", "status"))
    assert statuses == {locked.pk: "running", other.pk: "queued"}


def test_a_round_of_the_reaper_takes_three_queries(queued, django_assert_num_queries):
    leases.claim(queued.pk, leases.new_holder_name())

    with django_assert_num_queries(3):
        reaper.reap_once()


def test_a_run_that_waits_for_long_is_dispatched_again(queued, monkeypatch):
    dispatched = []
    monkeypatch.setattr(reaper, "get_runner", lambda: type("Runner", (), {"dispatch": dispatched.append}))
    monkeypatch.setattr(reaper, "find_engine", lambda: None)  # as in a process that executes no runs
    monkeypatch.setattr(workers, "is_any_alive", lambda: False)

    reaper.reap_once()
    assert dispatched == []
    AgentRun.objects.filter(pk=queued.pk).update(created_at=timezone.now() - timedelta(seconds=6))
    reaper.reap_once()
    assert dispatched == [queued.pk]

    # Workers take it themselves. If they are full, each process would send messages each second.
    monkeypatch.setattr(workers, "is_any_alive", lambda: True)
    reaper.reap_once()
    assert dispatched == [queued.pk]


def test_a_child_run_without_its_parent_is_cancelled(queued):
    done = AgentRun.objects.filter(pk=queued.pk)
    done.update(status="failed", finished_at=timezone.now())
    child = start_run(AgentFactory(model=DEMO), member("editor"), options={"durable": True})
    AgentRun.objects.filter(pk=child.pk).update(parent=queued)

    reaper.reap_once()

    child.refresh_from_db()
    assert child.status == "cancelled"


def test_readers_do_not_end_a_lost_durable_run(queued):
    from runs_app.events.streams import check_over

    leases.claim(queued.pk, "there:1:b")
    AgentRun.objects.filter(pk=queued.pk).update(lease_until=timezone.now() - timedelta(seconds=9))

    assert not check_over(queued.pk)
    assert run_ends.end_lost_runs() == 0


# --- Lost leases and stopping processes


def wait_until_queued(run):
    wait_until(lambda: AgentRun.objects.get(pk=run.pk).status == "queued", 20, "the hand-over")


def test_no_step_begins_without_a_lease(planned, idle_engine):
    run = start_here(TWO_CALLS)
    wait_for_steps(run, 1, "started")
    writer, renewals = get_engine().writer, []
    writer._renew = lambda *arguments: renewals.append(arguments)
    try:
        wait_until(lambda: renewals, 20, "the end of a renewal that was under way")
        writer.runs[run.pk].leased_until = 0.0
        (planned / "one.open").touch()
        wait_until(lambda: run.pk not in get_engine().run_tasks, 20, "the end of the task")
    finally:
        del writer._renew

    # No other process has claimed the run. Its lease would be renewed for ever, without a task that executes it.
    wait_until_queued(run)
    assert take_over(run).status == "succeeded"
    assert notes(planned, "tool 1") == ["tool 1 begins", "tool 1 ends"]


@pytest.mark.parametrize(
    ("tool", "kind", "result"), [("count", "model", "result 0"), ("count-once", "tool", UNKNOWN_OUTCOME_MESSAGE)]
)
def test_no_tool_begins_after_a_commit_that_takes_longer_than_the_lease(
    planned, idle_engine, monkeypatch, tool, kind, result
):
    """The commit is that of the answer that calls the tool, or that of the row of a call that may not repeat."""
    engine = get_engine()
    mark_written = engine.writer._mark_written

    def mark_written_late(snapshots, owned):
        for run_id, snapshot in snapshots.items():
            if any(step.kind == kind for step in snapshot.steps):
                engine.writer.runs[run_id].leased_until = 0.0
        mark_written(snapshots, owned)

    with monkeypatch.context() as patched:
        patched.setattr(engine.writer, "_mark_written", mark_written_late)
        patched.setattr(engine.writer, "_renew", lambda *arguments: None)
        run = start_here([[[tool, {"number": 0}]], "Done."], tools=[tool])
        wait_for_steps(run, 1)
        wait_until(lambda: run.pk not in engine.run_tasks, 20, "the end of the task")
    assert notes(planned, "tool") == []

    wait_until_queued(run)
    done = take_over(run)
    assert (done.status, chunks(done, "tool-result")[0]["payload"]["result"]) == ("succeeded", result)


def test_a_suspended_process_writes_nothing_when_it_wakes_up(engine):
    first = engine.start_process()
    run = engine.start(TWO_CALLS)
    engine.wait_for_note("tool 1 begins")
    engine.wait_for_steps(run, started=1)

    engine.suspend(first, run)
    engine.start_process()
    engine.wait_for_note("tool 1 begins", 2)
    first.send_signal(signal.SIGCONT)
    engine.open("one")

    done = engine.finish(run)
    assert (done.status, done.output, done.fence) == ("succeeded", "Done.", 2)
    assert event_numbers(done) == list(range(1, done.last_event_number + 1))
    assert len(chunks(done, "finish")) == 1
    assert [chunk["payload"]["toolCallId"] for chunk in chunks(done, "tool-result")] == ["c0-0", "c1-0"]


def test_a_process_that_stops_hands_its_runs_over(engine):
    first = engine.start_process()
    answering = engine.start(["One two three."], gates={"0": "never"})
    working = engine.start([[["count", {"number": 5, "gate": "five"}]], "Done."])
    engine.wait_for_note("model 0", 2)
    engine.wait_for_note("tool 5 begins")

    first.send_signal(signal.SIGTERM)
    wait_until(lambda: AgentRun.objects.get(pk=answering.pk).status == "queued", 30, "the hand-over of the answer")
    engine.open("five")  # the tool may finish
    engine.open("never")
    first.wait(30)
    engine.start_process()

    for run in (answering, working):
        done = engine.finish(run)
        assert (done.status, done.error, done.attempts, done.fence) == ("succeeded", "", 0, 2)
        assert event_numbers(done) == list(range(1, done.last_event_number + 1))
    assert engine.notes("tool 5") == ["tool 5 begins", "tool 5 ends"]


@pytest.mark.django_db(transaction=True)
def test_a_renewal_locks_runs_in_the_order_of_their_ids(queued):
    """As all who lock several: otherwise a renewal and the end of a child run could wait for each other."""
    higher = start_run(AgentFactory(model=DEMO), member("editor"), options={"durable": True})
    for run in (higher, queued):  # the rows are found in this order
        AgentRun.objects.filter(pk=run.pk).update(status="running", holder="here:1:a", lease_until=timezone.now())
    renewal = threading.Thread(target=renew_in_thread, args=["here:1:a", [higher.pk, queued.pk]])

    with transaction.atomic():
        AgentRun.objects.select_for_update().get(pk=queued.pk)
        renewal.start()
        wait_until(is_a_lock_waited_for, 20, "the renewal at the first row")
        assert AgentRun.objects.select_for_update(nowait=True).get(pk=higher.pk) == higher
    renewal.join(20)

    assert not AgentRun.objects.filter(lease_until__lt=timezone.now()).exists()


def renew_in_thread(holder, run_ids):
    try:
        leases.renew(holder, run_ids)
    finally:
        connection.close()


def is_a_lock_waited_for():
    """Return whether a transaction waits for a row. SQLite has one lock for all rows."""
    if connection.vendor != "postgresql":
        return True
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM pg_locks JOIN pg_stat_activity USING (pid)"
            " WHERE NOT granted AND datname = current_database()"
        )
        return cursor.fetchone() != (0,)
