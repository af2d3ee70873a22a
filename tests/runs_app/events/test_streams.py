"""Streams of running runs."""

import itertools

import pytest
from django.db import OperationalError, connection

from agentcms.db import outages
from runs_app.engine import run_ends
from runs_app.events import streams
from runs_app.frequent_queries import MAX_EVENTS_PER_READ
from runs_app.models import RunEvent
from tests.factories import AgentFactory, member
from tests.runs import LONG, SLOW, start_run, wait_for_text
from tests.runs_app.factories import RunFactory

pytestmark = pytest.mark.usefixtures("idle_engine")


@pytest.fixture
def run():
    return wait_for_text(start_run(AgentFactory(model=SLOW), member("editor"), LONG))


@pytest.mark.postgres_only
def test_a_waiting_reader_holds_no_database_connection(run):
    for number, _ in enumerate(streams.follow_events(run.pk)):
        assert connection.connection is None
        if number == 5:
            break

    run_ends.cancel_run(run.pk)


def test_a_reader_gets_all_events_before_its_process_stops(run, monkeypatch):
    monkeypatch.setattr(streams, "stopping", type(streams.stopping)())
    batches = streams.follow_events(run.pk)
    read = next(batches)
    streams.stopping.set()

    rest = [event for batch in batches for event in batch]

    assert [number for number, _ in read + rest] == list(range(1, len(read + rest) + 1))
    run.refresh_from_db()
    assert not run.is_finished
    run_ends.cancel_run(run.pk)


def test_an_idle_stream_sends_heartbeats(run, monkeypatch):
    monkeypatch.setattr(streams, "HEARTBEAT", 0)

    silent = next(batch for batch in streams.follow_events(run.pk) if batch == [])

    assert silent == []
    run_ends.cancel_run(run.pk)


def test_the_stream_of_a_deleted_run_ends():
    from uuid import uuid4

    run_id = uuid4()

    ((event,),) = streams.follow_events(run_id, 3)

    assert (event[0], event[1]["type"]) == (4, "error")
    assert event[1]["payload"]["error"]["message"] == f"Run {run_id} was deleted."


def test_a_stream_reads_one_batch_at_a_time(django_assert_num_queries):
    """It reads the next batch when it is asked for it, and never ahead."""
    run = RunFactory(chunks=[])
    RunEvent.objects.bulk_create(
        RunEvent(run=run, number=number, type="text-delta", data={"type": "text-delta", "payload": {}})
        for number in range(1, 3 * MAX_EVENTS_PER_READ)
    )
    stream = streams.EventStream(run.pk, 0, streams.StreamSlot(run.requested_by), numbered=True)
    blocks = iter(stream)
    next(blocks)  # the first bytes, before any event is read

    with django_assert_num_queries(1):
        batch = next(blocks)

    stream.close()
    assert batch.count(b"id: ") == MAX_EVENTS_PER_READ


@pytest.fixture
def outage(monkeypatch):
    """Return a context in which reads of runs fail again and again, as when the connection is lost."""
    monkeypatch.setattr(outages, "RETRY_INTERVAL", 0.01)
    fails = itertools.cycle([True, False, False, False, False])

    def lose_connection(execute, sql, params, many, context):
        if "runs_app_" in sql and next(fails):
            raise OperationalError("server closed the connection unexpectedly")
        return execute(sql, params, many, context)

    return lambda: connection.execute_wrapper(lose_connection)


def test_a_reader_gets_all_events_although_connections_are_lost(run, outage):
    run_ends.cancel_run(run.pk)

    with outage():
        numbers = [number for batch in streams.follow_events(run.pk) for number, _ in batch]

    assert numbers == list(range(1, run.events.count() + 1))


def test_a_run_is_awaited_although_connections_are_lost(run, outage):
    run_ends.cancel_run(run.pk)

    with outage():
        assert streams.wait_until_over(run.pk).status == "cancelled"
