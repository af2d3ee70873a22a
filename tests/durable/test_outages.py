"""Durable runs while the database is away, and while all processes are replaced."""

import math
import signal
import time

import pytest
from django.db import OperationalError, connection, transaction

from jobs_app import runner
from runs_app.building import workflows
from runs_app.engine import sub_runs
from runs_app.engine.engine import get_engine
from runs_app.engine.execution import execute
from runs_app.events import writer
from runs_app.models import AgentRun
from runs_app.resolution import ResolvedAgent
from tests.conftest import DRILL
from tests.durable.test_crash import assert_complete
from tests.durable.test_journal import notes, start, take_over, wait_for_steps
from tests.factories import AgentFactory
from tests.runs import chunks, wait_for_end
from tests.served import wait_until

RUNS = 50 if DRILL else 10
CALLS = 6
TWO_CALLS = [[["count", {"number": 0}]], [["count", {"number": 1, "gate": "one"}]], "Done."]


@pytest.fixture(autouse=True)
def no_earlier_outage(monkeypatch):
    """Forget the outages of the tests before, which would excuse errors of the database."""
    monkeypatch.setattr(get_engine().writer, "lost_database_at", -math.inf)


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
    wait_until(lambda: run.pk not in get_engine().run_tasks, 30, "the end of the task")
    # One more lost process would be too many.
    AgentRun.objects.filter(pk=run.pk).update(lease_until=run.created_at, attempts=2)
    (planned / "one.open").touch()
    end()

    done = wait_for_end(run)
    assert (done.status, done.error, done.fence) == ("succeeded", "", 2)
    assert_complete(done)
    assert notes(planned, "tool 0") == ["tool 0 begins", "tool 0 ends"]


def lose_answer_of_commit(monkeypatch, is_due):
    """Let the first commit of the writer for which `is_due` is true happen, but lose its answer."""
    original, lost = writer.save_snapshots, []

    def save(snapshots, *args, **options):
        owned = original(snapshots, *args, **options)
        if not lost and any(is_due(snapshot) for snapshot in snapshots.values()):
            lost.append(True)
            transaction.on_commit(fail)
        return owned

    def fail():
        raise OperationalError("The connection was lost.")

    monkeypatch.setattr(writer, "save_snapshots", save)
    return lost


@pytest.mark.parametrize("is_durable", [True, False], ids=["durable", "not durable"])
@pytest.mark.parametrize("lost_commit", ["of a step", "of the end"])
def test_a_commit_whose_answer_is_lost_is_not_repeated(idle_engine, planned, monkeypatch, lost_commit, is_durable):
    conditions = {
        "of a step": lambda snapshot: snapshot.chunks and snapshot.end is None,
        "of the end": lambda snapshot: snapshot.end is not None,
    }
    lost, lost_runs = lose_answer_of_commit(monkeypatch, conditions[lost_commit]), []
    monkeypatch.setattr(get_engine().writer, "cancel_lost_run", lost_runs.append)
    run = start(TWO_CALLS, is_durable=is_durable)
    if lost_commit == "of a step":
        wait_until(lambda: lost, 30, "a commit before the end")
    (planned / "one.open").touch()

    done = wait_for_end(run)
    wait_until(lambda: run.pk not in get_engine().run_tasks, 30, "the end of the task")

    assert (lost, lost_runs) == ([True], [])
    assert (done.status, done.error, done.fence) == ("succeeded", "", int(is_durable))
    assert_complete(done)


LIMITS = ["idle_in_transaction_session_timeout", "transaction_timeout"]  # the second one since PostgreSQL 17


@pytest.mark.postgres_only
@pytest.mark.parametrize("is_durable", [True, False], ids=["durable", "not durable"])
@pytest.mark.parametrize("limit", LIMITS)
def test_a_transaction_that_the_server_ends_is_repeated(idle_engine, planned, monkeypatch, limit, is_durable):
    """As after a process has hung in a transaction, or on a server too slow for its `transaction_timeout`."""
    original, ended = writer.save_snapshots, []

    def save(snapshots, *args, **options):
        if not ended and any(snapshot.chunks for snapshot in snapshots.values()):
            ended.append(True)
            with connection.cursor() as cursor:
                cursor.execute(f"SET LOCAL {limit} = '100ms'")
            time.sleep(0.5)
        return original(snapshots, *args, **options)

    monkeypatch.setattr(writer, "save_snapshots", save)
    run = start(TWO_CALLS, is_durable=is_durable)
    (planned / "one.open").touch()

    done = wait_for_end(run)

    assert ended == [True]
    assert (done.status, done.error, done.fence) == ("succeeded", "", int(is_durable))
    assert_complete(done)


def fail_times(monkeypatch, owner, name, times):
    """Let the first calls of a function fail as without a database."""
    original, left = getattr(owner, name), [None] * times

    def call(*args, **kwargs):
        if left:
            left.pop()
            raise OperationalError("The database is away.")
        return original(*args, **kwargs)

    monkeypatch.setattr(owner, name, call)


def wait_until_queued(run, attempts):
    queued = AgentRun.objects.filter(pk=run.pk, status="queued", attempts=attempts)
    wait_until(queued.exists, 30, f"that run {run.pk} is queued")
    wait_until(lambda: run.pk not in get_engine().run_tasks, 30, "the end of the task")


def test_a_run_that_meets_an_outage_outside_of_its_steps_goes_on_later(idle_engine, planned, monkeypatch):
    fail_times(monkeypatch, ResolvedAgent, "build", 1)  # of the first process
    fail_times(monkeypatch, execute, "load_steps", 1)  # of the second one
    run = start(TWO_CALLS)
    (planned / "one.open").touch()

    wait_until_queued(run, attempts=1)
    get_engine().offer(run.pk)
    wait_until_queued(run, attempts=2)

    done = take_over(run)
    assert (done.status, done.error, done.fence, done.attempts) == ("succeeded", "", 3, 0)
    assert_complete(done)


def test_a_run_that_meets_an_outage_before_its_execution_goes_on_later(idle_engine, planned, monkeypatch):
    """Here the span of the run could not be made."""
    fail_times(monkeypatch, execute, "execute_in_span", 1)
    run = start(TWO_CALLS)
    (planned / "one.open").touch()

    wait_until_queued(run, attempts=1)

    done = take_over(run)
    assert (done.status, done.error, done.fence) == ("succeeded", "", 2)
    assert_complete(done)


def test_an_outage_that_the_whole_process_meets_is_no_attempt_of_a_step(idle_engine, planned, monkeypatch, away):
    begin, end = away
    original = ResolvedAgent.build

    def meet_outage(*args, **kwargs):
        begin()
        raise OperationalError("The database is away.")

    monkeypatch.setattr(ResolvedAgent, "build", meet_outage)
    run = start(TWO_CALLS)
    wait_until(lambda: get_engine().writer.is_unsure, 30, "the outage")
    monkeypatch.setattr(ResolvedAgent, "build", original)
    (planned / "one.open").touch()
    end()

    wait_until_queued(run, attempts=0)
    done = take_over(run)
    assert (done.status, done.error, done.fence) == ("succeeded", "", 2)


def test_an_error_of_the_database_that_repeats_itself_ends_a_run(idle_engine, planned, monkeypatch):
    fail_times(monkeypatch, ResolvedAgent, "build", 3)
    run = start(TWO_CALLS)

    for attempts in (1, 2):
        wait_until_queued(run, attempts)
        get_engine().offer(run.pk)
    wait_until_queued(run, 3)

    done = take_over(run)
    assert done.status == "failed"
    assert done.error.startswith("The server process of this run stopped or lost the database 3 times in a row")


def test_an_outage_in_the_call_of_a_sub_agent_fails_neither_run(idle_engine, planned, monkeypatch):
    """The child run of a parallel call is queued too: it must not be cancelled."""
    fail_times(monkeypatch, sub_runs, "is_suspended", 1)
    quick = {"provider": "planned", "name": "plan", "plan": ["Quick."]}
    slow = {"provider": "planned", "name": "plan", "plan": [[["count", {"number": 0, "gate": "slow"}]], "Slow."]}
    AgentFactory(id="quick", model=quick)
    AgentFactory(id="slow", model=slow, tools=["count"])
    calls = [["agent-quick", {"prompt": "Go"}], ["agent-slow", {"prompt": "Go"}]]
    run = start([calls, "Done."], agents=["quick", "slow"])

    wait_until_queued(run, attempts=1)
    (planned / "slow.open").touch()
    wait_until(lambda: not get_engine().run_tasks, 30, "the end of the child run's task")

    done = take_over(run)
    assert (done.status, done.error) == ("succeeded", "")
    assert_complete(done)
    assert [chunk["payload"]["result"] for chunk in chunks(done, "tool-result")] == ["Quick.", "Slow."]
    assert set(AgentRun.objects.values_list("status", flat=True)) == {"succeeded"}


def test_an_outage_in_the_call_of_a_workflow_is_no_error_of_the_workflow(idle_engine, planned, monkeypatch):
    monkeypatch.setattr(runner, "send_job", lambda job_id: runner.run_claimed(str(job_id)))
    fail_times(monkeypatch, workflows, "start_workflow", 1)
    run = start([[["workflow-word-frequency", {"text": "a b a"}]], "Done."], workflows=["word-frequency"])

    wait_until_queued(run, attempts=1)

    done = take_over(run)
    assert (done.status, done.error) == ("succeeded", "")
    assert [chunk["payload"]["result"] for chunk in chunks(done, "tool-result")] == [{"a": 2, "b": 1}]


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
