"""When the writer commits the events of a run."""

import asyncio
import threading
from types import SimpleNamespace

import pytest
from django.db import connection
from django.db.backends.signals import connection_created
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from pydantic_ai.models.function import DeltaToolCall

from memory_app.models import Thread
from runs_app.engine import run_ends
from runs_app.engine.engine import get_engine
from runs_app.engine.thread_pools import run_blocking
from runs_app.events import pending_writes, writer
from runs_app.events.pending_runs import PendingRun, take_snapshot
from runs_app.models import AgentRun
from tests.factories import AgentFactory, UserFactory, member
from tests.runs import chunks, start_run, wait_for_end, wait_for_text
from tests.runs_app.factories import RunFactory
from tests.served import wait_until

pytestmark = pytest.mark.usefixtures("idle_engine")


@pytest.fixture(autouse=True)
def no_gathered_commits(monkeypatch):
    """Let other chunks than the first of a text and the last of a run wait for an hour."""
    monkeypatch.setattr(pending_writes, "COMMIT_INTERVAL", 3600)


@pytest.fixture
def resumed():
    """Return the event for which the model waits in the middle of its answer."""
    resumed = threading.Event()
    yield resumed
    resumed.set()


def texts(run):
    return [chunk["payload"]["text"] for chunk in chunks(run, "text-delta")]


def test_the_first_piece_and_the_end_are_written_at_once(agent_with_model, resumed):
    async def words(messages, info):
        yield "Hello "
        await run_blocking(resumed.wait, 60)
        yield "there "
        yield "again"

    run = wait_for_text(start_run(agent_with_model(words), member("editor")))
    assert texts(run) == ["Hello "]
    resumed.set()
    done = wait_for_end(run)

    assert done.status == "succeeded"
    assert texts(done) == ["Hello ", "there again"]
    assert [event.number for event in done.events.all()] == list(range(1, done.last_event_number + 1))


def test_the_first_piece_of_a_later_answer_is_written_at_once(agent_with_model, resumed):
    async def words(messages, info):
        if len(messages) == 1:
            yield {0: DeltaToolCall("word-count", '{"text": "a"}', tool_call_id="c")}
            return
        yield "One word."
        await run_blocking(resumed.wait, 60)

    run = wait_for_text(start_run(agent_with_model(words), member("editor")))

    assert texts(run) == ["One word."]
    assert [chunk["type"] for chunk in chunks(run, "tool-call", "tool-result")] == ["tool-call", "tool-result"]


def test_an_unavailable_database_delays_events_only(agent_with_model, resumed, monkeypatch, caplog):
    from django.db import OperationalError

    write, failures = writer.EventWriter.write, iter([True, True])

    def fail_twice(self, snapshots):
        if snapshots and next(failures, False):
            raise OperationalError("gone")
        write(self, snapshots)

    monkeypatch.setattr(writer.EventWriter, "write", fail_twice)

    async def words(messages, info):
        yield "Hello"

    done = wait_for_end(start_run(agent_with_model(words), member("editor")))

    assert (done.status, done.output) == ("succeeded", "Hello")
    assert caplog.text.count("Events of runs are retried") == 2
    wait_until(lambda: next(failures, None) is None)


async def cancel_while_it_waits(future):
    waiting = asyncio.ensure_future(asyncio.wrap_future(future))
    await asyncio.sleep(0)
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)


def test_an_error_that_leaves_a_transaction_open_loses_no_later_event(agent_with_model, resumed, monkeypatch):
    failed = threading.Event()

    def leave_transaction_open(holder):
        if failed.is_set():
            return []
        connection.set_autocommit(False)  # as an error at the end of a transaction does
        failed.set()
        raise RuntimeError

    async def words(messages, info):
        yield "Hello "
        await run_blocking(resumed.wait, 60)
        yield "there"

    monkeypatch.setattr(writer, "cancel_requested_ids", leave_transaction_open)
    run = wait_for_text(start_run(agent_with_model(words), member("editor")))
    assert failed.wait(30)
    resumed.set()

    assert texts(wait_for_end(run)) == ["Hello ", "there"]


def test_runs_that_follow_each_other_share_the_connection_of_the_writer(monkeypatch):
    opened = []
    monkeypatch.setattr(writer, "CONNECTION_IDLE", 0)
    agent = AgentFactory()
    wait_for_end(start_run(agent, member("editor")))
    wait_until(lambda: not get_engine().writer.runs, 10, "the end of the run")

    def note(**kwargs):
        opened.append(threading.current_thread().name)

    connection_created.connect(note)
    monkeypatch.setattr(writer, "CONNECTION_IDLE", 60)
    for _ in range(3):
        wait_for_end(start_run(agent, member("editor")))
        wait_until(lambda: not get_engine().writer.runs, 10, "the end of the run")

    assert opened.count("run-writer") <= 1


def test_the_writer_closes_its_connection_after_a_while_without_runs(monkeypatch):
    closed = threading.Event()
    monkeypatch.setattr(writer, "CONNECTION_IDLE", 0.05)
    monkeypatch.setattr(writer, "connection", SimpleNamespace(close=closed.set))

    wait_for_end(start_run(AgentFactory(), member("editor")))

    assert closed.wait(10)


def test_a_cancelled_task_leaves_the_runs_of_the_same_commit_alone():
    events = get_engine().writer
    runs = [RunFactory(open=True, holder=events.holder, chunks=[]) for _ in range(2)]
    snapshots = {}
    for run in runs:
        events.runs[run.pk] = PendingRun(chunks=[({"type": "finish", "payload": {}}, timezone.now())])
        events.runs[run.pk].end = {"status": "succeeded", "output": "Done."}
        snapshots[run.pk] = take_snapshot(events.runs[run.pk])
    ends = [events.runs[run.pk].written for run in runs]

    asyncio.run(cancel_while_it_waits(ends[0]))
    events.write(snapshots)

    assert [end.result(1) for end in ends] == [True, True]
    assert not {run.pk for run in runs} & events.runs.keys()


@pytest.fixture
def lost():
    """Return the list of the runs that `idle_writer` has given up."""
    return []


@pytest.fixture
def idle_writer(lost):
    """Return a writer without a thread."""
    return writer.EventWriter("this-process", lambda run_id: None, lost.append)


def ending_run(events, **payload):
    """Return a run of a writer that has ended with a last chunk, and the future of its end."""
    thread = Thread.objects.create(key=f"t{len(events.runs)}", user=UserFactory())
    run = RunFactory(open=True, holder=events.holder, chunks=[], thread=thread)
    pending = events.runs[run.pk] = PendingRun(chunks=[({"type": "finish", "payload": payload}, timezone.now())])
    pending.end = {"status": "succeeded", "output": "Done."}
    return run, pending.written


def write_all(events):
    events.write({run_id: take_snapshot(run) for run_id, run in events.runs.items()})


def test_a_run_that_cannot_be_stored_fails_alone(idle_writer, lost):
    broken, broken_end = ending_run(idle_writer, value=object())
    other, end = ending_run(idle_writer)

    write_all(idle_writer)

    broken.refresh_from_db()
    other.refresh_from_db()
    assert (broken.status, broken.error) == ("failed", writer.UNSTORABLE_MESSAGE)
    assert (broken_end.result(0), lost) == (False, [broken.pk])
    assert (other.status, end.result(0)) == ("succeeded", True)


@pytest.mark.postgres_only
def test_a_child_run_that_cannot_be_stored_is_locked_with_its_parent(idle_writer):
    """In the order of all others. Locked one after the other, both would wait for a process that ends the parent."""
    broken, _ = ending_run(idle_writer, value=object())
    AgentRun.objects.filter(pk=broken.pk).update(parent=(parent := RunFactory(open=True)), root_id=parent.pk)

    with CaptureQueriesContext(connection) as queries:
        write_all(idle_writer)

    broken.refresh_from_db()
    locks = [query["sql"] for query in queries if "FOR UPDATE" in query["sql"]]
    assert broken.status == "failed"
    assert ["parent_id" in sql.partition("WHERE")[2] for sql in locks][:2] == [False, True]  # the first failed


def test_a_run_whose_end_cannot_be_stored_does_not_stop_the_others(idle_writer, lost):
    broken, broken_end = ending_run(idle_writer)
    end = ending_run(idle_writer)[1]

    def fail(run_id, **kwargs):
        if run_id == broken.pk:
            raise ValueError("no end")

    run_ends.run_ending.connect(fail)
    try:
        write_all(idle_writer)
    finally:
        run_ends.run_ending.disconnect(fail)

    broken.refresh_from_db()
    assert not broken.is_finished  # its lease expires, and another process ends it
    assert (broken_end.result(0), lost, [*idle_writer.runs]) == (False, [broken.pk], [])
    assert end.result(0)


def test_what_fails_after_a_commit_concerns_no_run(idle_writer, lost):
    ends = [ending_run(idle_writer)[1] for _ in range(2)]
    noticed = []

    def fail(run_id, **kwargs):
        noticed.append(run_id)
        raise ValueError("no metrics")

    run_ends.run_ended.connect(fail)
    runs = [*idle_writer.runs]
    try:
        write_all(idle_writer)
    finally:
        run_ends.run_ended.disconnect(fail)

    assert ([end.result(0) for end in ends], lost) == ([True, True], [])
    assert sorted(noticed) == sorted(runs)
