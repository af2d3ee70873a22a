"""Engines whose messages this process receives, as a worker does: the tests of durable runs pass over each of them.

The messages are real: through Valkey, DBOS, Temporal's server, or calls of this server by an executor of Inngest.
"""

import importlib
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from django.test import override_settings
from django.urls import clear_url_caches
from kombu import Consumer, Queue

import agentcms.urls
from agentcms.celery import app
from runs_app.engine.engine import WEB_RUNNERS, get_engine
from runs_app.engine.runners import RUNNERS, Runner, get_runner
from runs_app.engine.runners.celery import QUEUE
from runs_app.tasks import perform_run
from tests.broker import broker
from tests.durable.inngest_executor import SIGNING_KEY, InngestExecutor

TEMPORAL_NAMESPACE = "local"  # so that this process takes no message for the workers of other tests
NAMES = ["process", "celery", "dbos", "temporal", "inngest"]


@contextmanager
def local_worker(name: str, request, settings) -> Iterator[None]:
    """Let this process be the worker of an engine in the block."""
    settings.RUN_ENGINE = name
    get_runner.cache_clear()
    engine = get_engine()
    engine.is_worker = name not in WEB_RUNNERS
    try:
        with WORKERS[name](request, settings):
            yield
    finally:
        engine.is_worker = False
        settings.RUN_ENGINE = "process"
        get_runner.cache_clear()


@contextmanager
def no_messages(request, settings) -> Iterator[None]:
    yield


# --- Celery


@contextmanager
def celery_messages(request, settings) -> Iterator[None]:
    address = request.getfixturevalue("valkey")
    url = address.replace("unix://", "redis+socket://").replace("?db=0", "?virtual_host=0")
    stopping = threading.Event()
    with broker(url):
        thread = threading.Thread(target=receive_messages, args=[url, stopping], daemon=True)
        thread.start()
        try:
            yield
        finally:
            stopping.set()
            thread.join(10)


def receive_messages(url: str, stopping: threading.Event) -> None:
    def receive(body, message) -> None:
        perform_run(*body[0])
        message.ack()

    with app.connection_for_read(url) as connection, Consumer(connection, [Queue(QUEUE)], callbacks=[receive]):
        while not stopping.is_set():
            with suppress(TimeoutError):
                connection.drain_events(timeout=0.1)


# --- DBOS and Temporal, whose workers are started once


@contextmanager
def dbos_messages(request, settings) -> Iterator[None]:
    settings.DBOS_DATABASE_URL = dbos_url(request.getfixturevalue("dbos_folder"))
    with shared_runner("dbos", request.getfixturevalue("dbos_worker")):
        yield


@contextmanager
def temporal_messages(request, settings) -> Iterator[None]:
    settings.TEMPORAL_ADDRESS = request.getfixturevalue("temporal_server")
    settings.TEMPORAL_NAMESPACE = TEMPORAL_NAMESPACE
    with shared_runner("temporal", request.getfixturevalue("temporal_worker")):
        yield


@contextmanager
def shared_runner(name: str, runner: Runner) -> Iterator[None]:
    """Use a runner that has started its worker."""
    before, RUNNERS[name] = RUNNERS[name], f"{__name__}.current_runner"
    _current.append(runner)
    get_runner.cache_clear()
    try:
        yield
    finally:
        RUNNERS[name] = before
        _current.clear()


_current: list[Runner] = []


def current_runner() -> Runner:
    return _current[0]


@contextmanager
def dbos_worker(folder: Path) -> Iterator[Runner]:
    from dbos import DBOS

    from runs_app.engine.runners.dbos import DbosRunner

    runner = DbosRunner()
    with override_settings(DBOS_DATABASE_URL=dbos_url(folder)):
        runner.start_worker()
    yield runner
    DBOS.destroy()
    runner.client.destroy()


def dbos_url(folder: Path) -> str:
    return f"sqlite:///{folder}/dbos.sqlite3"


@contextmanager
def temporal_worker(address: str) -> Iterator[Runner]:
    from runs_app.engine.runners.temporal import TemporalRunner

    runner = TemporalRunner()
    with override_settings(TEMPORAL_ADDRESS=address, TEMPORAL_NAMESPACE=TEMPORAL_NAMESPACE):
        runner.start_worker()
    yield runner
    runner.call(runner.worker.shutdown()).result(30)


# --- Inngest


@contextmanager
def inngest_messages(request, settings) -> Iterator[None]:
    with inngest_executor(request, settings):
        yield


@contextmanager
def inngest_executor(request, settings) -> Iterator[InngestExecutor]:
    """Serve the application with RUN_ENGINE=inngest, and run the executor that it uses."""
    executor = InngestExecutor(f"{request.getfixturevalue('live_server').url}/inngest")
    settings.INNGEST_EVENT_KEY, settings.INNGEST_SIGNING_KEY = "event-key", SIGNING_KEY
    settings.INNGEST_BASE_URL = executor.address
    settings.RUN_ENGINE = "inngest"
    reload_urls()
    try:
        yield executor
    finally:
        settings.RUN_ENGINE = "process"
        executor.close()
        reload_urls()


def reload_urls() -> None:
    from runs_app.engine.runners import inngest

    inngest.get_client.cache_clear()
    get_runner.cache_clear()
    importlib.reload(agentcms.urls)
    clear_url_caches()


WORKERS = {
    "process": no_messages,
    "celery": celery_messages,
    "dbos": dbos_messages,
    "temporal": temporal_messages,
    "inngest": inngest_messages,
}
