"""Durable runs while the database is away, and while all processes are replaced."""

import signal

import pytest
from django.db import OperationalError

from runs_app.engine import reaper
from runs_app.engine.engine import get_engine
from runs_app.models import AgentRun
from tests.conftest import DRILL
from tests.durable.test_crash import assert_complete
from tests.durable.test_journal import notes, start, take_over, wait_for_steps
from tests.runs import wait_for_end
from tests.served import wait_until

RUNS = 50 if DRILL else 10
CALLS = 6
TWO_CALLS = [[["count", {"number": 0}]], [["count", {"number": 1, "gate": "one"}]], "Done."]


@pytest.fixture
def away(monkeypatch):
    """Return a function that lets the writer of this process fail as without a database, and one that ends it."""
    writer = get_engine().writer

    def begin():
        def fail():
            raise OperationalError("The database is away.")

        monkeypatch.setattr(writer, "run_once", fail)

    return begin, lambda: monkeypatch.delattr(writer, "run_once")


def test_a_short_outage_of_the_database_delays_a_run(idle_engine, planned, away):
    begin, end = away
    run = start(TWO_CALLS)
    wait_for_steps(run, 3)
    wait_for_steps(run, 1, "started")

    begin()
    (planned / "one.open").touch()
    wait_until(lambda: notes(planned, "tool 1 ends"), 30, "the end of the call")
    end()

    done = wait_for_end(run)
    assert (done.status, done.fence) == ("succeeded", 1)
    assert_complete(done)


def test_an_outage_longer_than_the_lease_ends_the_work_of_the_process(idle_engine, planned, away):
    begin, end = away
    run = start(TWO_CALLS)
    wait_for_steps(run, 3)
    wait_for_steps(run, 1, "started")

    begin()
    get_engine().writer.runs[run.pk].leased_until = 0.0  # as after six seconds
    wait_until(lambda: run.pk not in get_engine().tasks, 30, "the end of the task")
    end()
    AgentRun.objects.filter(pk=run.pk).update(lease_until=run.created_at)
    (planned / "one.open").touch()
    reaper.look_once()

    done = take_over(run)
    assert (done.status, done.fence) == ("succeeded", 2)
    assert_complete(done)
    assert notes(planned, "tool 0") == ["tool 0 begins", "tool 0 ends"]


def test_a_deployment_fails_no_run(any_engine, settings):
    """All processes are told to stop, and new ones are started, while they execute many runs."""
    engine = any_engine
    settings.RUNS_PER_USER = settings.RUNS_PER_AGENT = RUNS
    old = [engine.start_process(), engine.start_process()]
    plan = [*([["count", {"number": number, "pause": 0.2}]] for number in range(CALLS)), "Done."]
    runs = [engine.start(plan, text=f"Run {number}") for number in range(RUNS)]
    engine.wait_for_note("tool 1 begins", RUNS // 2)

    for process in old:
        process.send_signal(signal.SIGTERM)
    engine.start_process()

    for run in runs:
        done = engine.finish(run, 120)
        assert (done.status, done.error, done.attempts) == ("succeeded", "", 0)
        assert_complete(done)
    # The tools had time to finish, so no call was repeated. Requests to the model in progress were.
    assert len(engine.notes("tool")) == 2 * CALLS * RUNS
    assert {process.wait(30) for process in old} == {0}
