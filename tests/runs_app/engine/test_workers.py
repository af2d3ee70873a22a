"""The process that executes a new durable run: a worker if one lives, else the process that starts the run."""

import asyncio
import socket
import subprocess
import sys
import threading
import time
from datetime import timedelta
from unittest.mock import Mock
from uuid import uuid4

import pytest
from celery.signals import worker_ready
from django.utils import timezone

from agentcms.backends.circuit_breaker import CircuitBreaker
from agentcms.celery import app
from agentcms.server.processes import PROJECT
from jobs_app.models import Heartbeat
from runs_app import tasks  # noqa: F401  connects the signal
from runs_app.engine import engine, lifecycle, reaper, workers
from runs_app.engine.engine import get_engine
from runs_app.engine.runners import get_runner
from runs_app.engine.runners.messages import MessageRunner
from runs_app.models import AgentRun
from tests.broker import broker
from tests.factories import AgentFactory, member
from tests.runs import DEMO, start_run, wait_for_end

pytestmark = pytest.mark.usefixtures("idle_engine")


@pytest.fixture(autouse=True)
def celery_runner(settings):
    settings.RUN_ENGINE = "celery"
    get_runner.cache_clear()
    workers.is_any_alive.cache_clear()
    yield
    get_runner.cache_clear()
    workers.is_any_alive.cache_clear()


def start():
    return start_run(AgentFactory(model=DEMO), member("editor"))


def test_a_living_worker_gets_new_runs():
    Heartbeat.record(Heartbeat.RUN_WORKER)

    run = start()

    run.refresh_from_db()
    assert (run.is_durable, run.status, run.holder) == (True, "queued", "")


def test_a_worker_takes_a_run_whose_message_does_not_arrive(monkeypatch):
    """The broker may lose it. Or all threads of the worker execute jobs that take long."""
    Heartbeat.record(Heartbeat.RUN_WORKER)
    run = start()
    AgentRun.objects.filter(pk=run.pk).update(created_at=timezone.now() - timedelta(seconds=6))
    monkeypatch.setattr(get_engine(), "is_worker", True)

    reaper.reap_once()

    assert wait_for_end(run).status == "succeeded"


@pytest.mark.parametrize("age", [None, 7], ids=["never", "seven seconds ago"])
def test_without_a_living_worker_the_process_that_starts_a_run_executes_it(age):
    if age is not None:
        Heartbeat.objects.create(name=Heartbeat.RUN_WORKER, at=timezone.now() - timedelta(seconds=age))

    done = wait_for_end(start())

    assert (done.status, done.is_durable, done.fence) == ("succeeded", True, 1)


def test_a_worker_that_cannot_execute_runs_gets_none(monkeypatch):
    monkeypatch.setattr(workers, "_written_at", float("-inf"))
    monkeypatch.setattr(get_engine(), "execute_run", None)
    with monkeypatch.context() as broken:
        broken.setattr(engine, "EXECUTE_MODULE", "runs_app.engine.nothing")
        with pytest.raises(ModuleNotFoundError):
            load_execute_run()
        lifecycle.report_worker()

    assert not Heartbeat.objects.filter(name=Heartbeat.RUN_WORKER).exists()
    load_execute_run()
    lifecycle.report_worker()
    assert Heartbeat.objects.filter(name=Heartbeat.RUN_WORKER).exists()


def test_a_worker_whose_engine_does_not_start_ends_with_the_reason(monkeypatch, caplog):
    """Celery would only log the error: the worker would look healthy but execute no run."""

    def fail(queues):
        raise RuntimeError("The namespace was not found.")

    monkeypatch.setattr(lifecycle, "start_worker", fail)

    with pytest.raises(SystemExit) as ended:
        worker_ready.send(Mock(app=app))

    assert ended.value.code == 1
    assert "This worker cannot execute runs and ends: RuntimeError: The namespace was not found." in caplog.text


def load_execute_run():
    running = get_engine()
    asyncio.run_coroutine_threadsafe(running._load_execute_run(), running.loop).result(30)


def test_without_a_broker_the_process_that_starts_a_run_executes_it(caplog):
    Heartbeat.record(Heartbeat.RUN_WORKER)

    with broker("redis://127.0.0.1:1"):
        first, second = wait_for_end(start()), wait_for_end(start())

    assert {first.status, second.status} == {"succeeded"}
    assert caplog.text.count("No worker can be reached, so this process executes runs itself.") == 1


def test_a_broker_that_hangs_delays_one_run_by_two_seconds():
    Heartbeat.record(Heartbeat.RUN_WORKER)
    with socket.create_server(("127.0.0.1", 0)) as hanging, broker(f"redis://127.0.0.1:{hanging.getsockname()[1]}"):
        delays = []
        for _ in range(2):
            began_at = time.monotonic()
            run = start()
            delays.append(time.monotonic() - began_at)
            assert wait_for_end(run).status == "succeeded"

    assert delays[0] < 4
    assert delays[1] < 1.5


class HangingRunner(MessageRunner):
    """A runner over a service that hangs."""

    service, circuit = "The queue", CircuitBreaker(retry_after=5)

    def __init__(self):
        super().__init__()
        self.is_over = threading.Event()

    def send_message(self, run_id):
        self.is_over.wait(30)


def test_a_service_that_hangs_does_not_keep_the_process_from_ending(monkeypatch, caplog):
    monkeypatch.setattr("runs_app.engine.runners.messages.MESSAGE_TIMEOUT", 0.1)
    runner = HangingRunner()
    try:
        assert not runner.send(uuid4())
        sending = [thread.daemon for thread in threading.enumerate() if thread.name.startswith("run-message")]
    finally:
        runner.is_over.set()

    assert sending == [True]
    assert messages(caplog) == ["The queue is unavailable: TimeoutError"]


def test_the_log_says_once_that_workers_are_away_and_once_that_they_are_back(caplog):
    caplog.set_level("INFO", "runs_app.engine.runners.messages")
    run_ids = [wait_for_end(start()).pk for _ in range(3)]
    for run_id in run_ids:
        get_runner().dispatch(run_id)

    assert messages(caplog) == ["No worker can be reached, so this process executes runs itself."]

    caplog.clear()
    Heartbeat.record(Heartbeat.RUN_WORKER)
    workers.is_any_alive.cache_clear()
    with broker("memory://"):
        for run_id in run_ids:
            assert get_runner().dispatch(run_id)

    assert messages(caplog) == ["Workers can be reached again and execute the runs that start now."]


def messages(caplog):
    name = "runs_app.engine.runners.messages"
    return [record.getMessage() for record in caplog.records if record.name == name]


def test_a_worker_loads_no_views():
    script = "import sys; from agentcms.celery import app; app.loader.import_default_modules(); "
    script += "print('agentcms.urls' in sys.modules, 'runs_app.tasks' in sys.modules)"

    done = subprocess.run([sys.executable, "-c", script], cwd=PROJECT, capture_output=True, text=True, timeout=60)

    assert (done.stdout.strip(), done.returncode) == ("False True", 0), done.stderr


def test_a_full_process_leaves_new_runs_queued(settings):
    settings.RUNS_PER_WORKER = 0

    run = start()

    assert AgentRun.objects.get(pk=run.pk).status == "queued"


def test_the_lease_of_a_new_run_is_by_the_clock_of_the_database(monkeypatch):
    """A process whose clock is wrong would lose its runs at once, or keep those of a dead one for long."""
    monkeypatch.setattr(timezone, "now", lambda: real_now() - timedelta(minutes=1))
    run = start()
    monkeypatch.undo()

    done = wait_for_end(run)

    assert (done.status, done.fence) == ("succeeded", 1)


def real_now():
    from datetime import UTC, datetime

    return datetime.now(UTC)


def test_the_age_of_a_heartbeat_is_by_the_clock_of_the_database(monkeypatch):
    """A worker whose clock is wrong would get no runs, or would count as alive for long after its end."""
    monkeypatch.setattr(timezone, "now", lambda: real_now() - timedelta(minutes=1))
    Heartbeat.record(Heartbeat.RUN_WORKER)
    monkeypatch.undo()

    assert workers.is_any_alive()


def test_new_runs_are_not_left_to_a_worker_whose_tools_finish(monkeypatch):
    monkeypatch.setattr(get_engine(), "is_stopping", False)  # restores it
    Heartbeat.record(Heartbeat.RUN_WORKER)
    alive_at_drain = []
    monkeypatch.setattr(lifecycle, "shut_down_runs", lambda: alive_at_drain.append(workers.is_any_alive()))

    lifecycle.shut_down_worker()

    assert alive_at_drain == [False]
    assert get_engine().is_stopping


def test_a_worker_says_that_it_lives_until_it_stops(monkeypatch):
    load_execute_run()
    monkeypatch.setattr(workers, "_written_at", float("-inf"))
    lifecycle.report_worker()
    assert workers.is_any_alive()

    monkeypatch.setattr(get_engine(), "is_stopping", True)
    workers.end_heartbeat()
    monkeypatch.setattr(workers, "_written_at", float("-inf"))
    lifecycle.report_worker()
    workers.is_any_alive.cache_clear()

    assert not workers.is_any_alive()
