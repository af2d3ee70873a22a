"""Fixtures of durable runs: the engine that executes them, with processes that a test may kill."""

import asyncio
import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from zlib import crc32

import pytest
from django.db import DatabaseError, connection, transaction

from agentcms.db.backends.sqlite3.base import WriterQueue
from agentcms.server.processes import PROJECT, stop_with_parent
from runs_app.engine import workers
from runs_app.engine.runners import Runner, get_runner
from runs_app.engine.start import rows
from runs_app.models import AgentRun
from runs_app.providers import cached_providers
from tests.broker import broker
from tests.conftest import DRILL
from tests.durable import agent_tools, local_workers
from tests.factories import AgentFactory, member
from tests.fork_server import Fork, ForkServers
from tests.runs import start_run, wait_for_end
from tests.served import TEST_VARIABLES, free_port, wait_until

Process = subprocess.Popen[bytes] | Fork
# Those of the tests, and those that differ from test to test.
OWN_VARIABLES = TEST_VARIABLES | {"DURABLE_FOLDER", "PYTEST_CURRENT_TEST"}
CARRIER = ["-m", "tests.durable.run_executor"]
COMMANDS = dict.fromkeys(("process", "dbos", "temporal"), CARRIER)
COMMANDS["celery"] = ["-m", "tests.durable.celery_worker"]
READY = {"celery": " ready."}
# The workers of tests of background tasks, which also execute jobs: forks, or the worker of the application with beat.
TASK_WORKERS = {"process": ["-m", "tests.durable.task_worker"], "celery": ["-m", "agentcms.server.worker"]}
# Processes of these engines are forks. That of DBOS needs a data folder of its own, and so a start of its own.
FORKED = {"process", "celery", "temporal"}
SERVICES = {"celery": "valkey", "temporal": "temporal_server"}  # fixtures that return an address


class QuietRunner:
    """A runner of a process that stops before it executes anything."""

    def find_local_engine(self):
        return None

    def dispatch(self, run_id):
        return True

    def stop(self, run_id):
        pass


class Engine:
    """The processes that execute the durable runs of a test."""

    def __init__(
        self, name: str, folder: Path, address: str, forks: ForkServers, command: list[str] | None = None
    ) -> None:
        self.name = name
        self.forks = forks
        self.command = command or COMMANDS[name]
        self.folder = folder
        self.address = address
        folder.joinpath("data").mkdir(exist_ok=True)
        self.processes: list[Process] = []
        self.user = member("editor")

    # --- Processes

    def start_process(self) -> Process:
        """Start a process that executes runs, and wait until it is ready."""
        log = self.folder / f"{len(self.processes)}.log"
        process = self.launch(log)
        self.processes.append(process)
        wait_until(
            lambda: process.poll() is not None or READY.get(self.name, "ready") in log.read_text(errors="replace"),
            60,
            f"the process; see {log}",
        )
        assert process.poll() is None, log.read_text(errors="replace")
        return process

    def launch(self, log: Path) -> Process:
        """Start a process without waiting for it."""
        if self.name in FORKED and self.command[1].startswith("tests."):
            own = {"DURABLE_FOLDER": str(self.folder)}
            return self.forks.fork(self.command, self.environment(), own, log)
        own = {"DURABLE_FOLDER": str(self.folder), "DATA_DIR": str(self.folder / "data")}
        with log.open("wb") as output:
            return subprocess.Popen(
                [sys.executable, *self.command],
                env={**self.environment(), **own},
                cwd=PROJECT,
                stdout=output,
                stderr=output,
            )

    def environment(self) -> dict[str, str]:
        """Return the variables of all processes of this engine."""
        inherited = {name: value for name, value in os.environ.items() if name not in OWN_VARIABLES}
        environment = {
            **inherited,
            "DJANGO_SETTINGS_MODULE": "tests.durable.settings",
            "DURABLE_DATABASE": str(connection.settings_dict["NAME"]),
            "RUN_ENGINE": self.name,
            "REDIS_URL": self.address if self.name == "celery" else "",
            "TEMPORAL_ADDRESS": self.address if self.name == "temporal" else "",
            "JOB_LEASE": "1",
        }
        if "DATABASE_URL" in os.environ:
            environment["DATABASE_URL"] = os.environ["DATABASE_URL"]
        return environment

    def kill(self, process: Process) -> None:
        process.kill()
        process.wait(10)

    def suspend(self, process: Process, run: AgentRun) -> None:
        """Suspend a process at a moment when it holds no lock that would suspend all others too."""
        wait_until(lambda: self.suspend_without_lock(process, run), 30, "a moment without a lock")

    def suspend_without_lock(self, process: Process, run: AgentRun) -> bool:
        if connection.vendor == "sqlite":
            suspend_between_writes(process, str(connection.settings_dict["NAME"]))
            return True
        process.send_signal(signal.SIGSTOP)
        try:
            with transaction.atomic():
                return AgentRun.objects.select_for_update(nowait=True).get(pk=run.pk) is not None
        except DatabaseError:
            process.send_signal(signal.SIGCONT)
            return False

    def stop_all(self) -> None:
        for process in self.processes:
            with suppress(ProcessLookupError):
                process.send_signal(signal.SIGCONT)
            process.terminate()
        for process in self.processes:
            try:
                process.wait(15)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait(10)

    def log(self) -> str:
        return "".join(path.read_text(errors="replace") for path in sorted(self.folder.glob("*.log")))

    # --- Runs

    def start(self, plan, *, tools=("count",), text="Begin", **options) -> AgentRun:
        """Start a durable run of a new agent whose model follows the plan."""
        model = {"provider": "planned", "name": "plan", "plan": plan, "gates": options.pop("gates", {})}
        fields = {name: options.pop(name) for name in ("memory", "agents", "input_processors") if name in options}
        agent = AgentFactory(model=model, tools=[*tools], **fields)
        return start_run(agent, self.user, text, options={"durable": True}, **options)

    def finish(self, run: AgentRun, seconds: float = 40) -> AgentRun:
        return wait_for_end(run, seconds)

    # --- Notes and gates

    def notes(self, *beginnings: str) -> list[str]:
        """Return what the model and the tools noted, or only the lines with one of these beginnings."""
        path = self.folder / "notes"
        lines = path.read_text().splitlines() if path.exists() else []
        return [line for line in lines if not beginnings or line.startswith(beginnings)]

    def wait_for_note(self, text: str, times: int = 1) -> None:
        wait_until(lambda: self.notes().count(text) >= times, 40, f"the note {text!r} in {self.notes()}; {self.log()}")

    def wait_for_steps(self, run: AgentRun, *, started: int = 0, done: int = 0) -> None:
        """Wait until so many steps of a run are stored."""
        steps = run.steps.all()
        wait_until(lambda: steps.filter(state="started").count() >= started, 30, f"{started} steps that have begun")
        wait_until(lambda: steps.filter(state="done").count() >= done, 30, f"{done} finished steps")

    def open(self, gate: str) -> None:
        (self.folder / f"{gate}.open").touch()


def suspend_between_writes(process: Process, path: str) -> None:
    """Suspend a process that neither writes to this SQLite file nor is the next one that will."""
    with (
        closing(WriterQueue(f"{path}-queue")) as queue,
        closing(sqlite3.connect(path, timeout=20, isolation_level=None)) as other,
    ):
        queue.acquire(20)
        other.execute("BEGIN IMMEDIATE")
        process.send_signal(signal.SIGSTOP)


@pytest.fixture
def planned(tmp_path, monkeypatch) -> Path:
    """Register the planned model and its tools in this process. Return the folder of their notes."""
    monkeypatch.setenv("DURABLE_FOLDER", str(tmp_path))
    agent_tools.register()
    cached_providers.invalidate()  # tests before may have read it without the planned model
    return tmp_path


# What the tests of this folder share ends with them. An idle server of Temporal needs 3 % of a processor.
@pytest.fixture(scope="package")
def fork_servers(tmp_path_factory) -> Iterator[ForkServers]:
    """Return the processes that fork those of the engines."""
    servers = ForkServers(lambda: tmp_path_factory.mktemp("fork-server"))
    yield servers
    servers.stop()


@contextmanager
def running_engine(name, request, folder, settings, monkeypatch, command=None) -> Iterator[Engine]:
    """Let processes of this engine execute durable runs. The process of the tests only starts them."""
    settings.RUN_ENGINE = name
    address = request.getfixturevalue(SERVICES[name]) if name in SERVICES else ""
    settings.TEMPORAL_ADDRESS = address
    get_runner.cache_clear()
    processes = Engine(name, folder, address, request.getfixturevalue("fork_servers"), command)
    if name == "process":
        monkeypatch.setattr(rows, "get_runner", QuietRunner)
    monkeypatch.setattr(workers, "is_any_alive", lambda: True)  # the process of the tests executes no run
    redis = address if name == "celery" else ""
    with broker(redis.replace("unix://", "redis+socket://").replace("?db=0", "?virtual_host=0") or "memory://"):
        try:
            yield processes
        finally:
            processes.stop_all()
            get_runner.cache_clear()


@pytest.fixture(scope="package")
def temporal_server(tmp_path_factory) -> Iterator[str]:
    """Start a server of Temporal and return its address."""
    folder = tmp_path_factory.mktemp("temporal")
    port = free_port()
    command = [str(Path(sys.executable).with_name("temporal")), "server", "start-dev", "--headless"]
    options = [
        "--namespace",
        local_workers.TEMPORAL_NAMESPACE,
        "--port",
        str(port),
        "--log-level",
        "error",
        "--db-filename",
        str(folder / "temporal.sqlite3"),
    ]
    with folder.joinpath("log").open("wb") as output:
        # Also where a signal ends the tests at once.
        parent_ends = stop_with_parent(os.getpid())
        process = subprocess.Popen(
            [*command, *options], cwd=folder, stdout=output, stderr=output, preexec_fn=parent_ends
        )
    address = f"127.0.0.1:{port}"
    try:
        wait_until(lambda: is_temporal_ready(address), 60, f"Temporal; see {folder}/log")
        yield address
    finally:
        process.terminate()
        process.wait(15)


def is_temporal_ready(address: str) -> bool:
    """Return True if clients can connect. The server accepts connections before it is ready."""
    from temporalio.client import Client

    try:
        asyncio.run(Client.connect(address))
    except RuntimeError:
        return False
    return True


# Tests of runs pass over each engine on PostgreSQL. On SQLite, `make drill` does so too: processes start slowly.
EVERY_ENGINE = DRILL or connection.vendor == "postgresql"
ENGINES = ["process", "celery", *(["dbos", "temporal"] if EVERY_ENGINE else [])]
IS_CI = bool(os.environ.get("CI"))


@pytest.fixture(params=ENGINES)
def engine(request, planned, transactional_db, settings, monkeypatch) -> Iterator[Engine]:
    """Return each engine."""
    with running_engine(request.param, request, planned, settings, monkeypatch) as processes:
        yield processes


@pytest.fixture(params=["process", pytest.param("celery", marks=pytest.mark.drill)])
def any_engine(request, planned, transactional_db, settings, monkeypatch) -> Iterator[Engine]:
    """Return an engine for what does not depend on it. `make drill` uses each of them: processes start slowly."""
    with running_engine(request.param, request, planned, settings, monkeypatch) as processes:
        yield processes


@pytest.fixture(params=["process", pytest.param("celery", marks=pytest.mark.drill)])
def task_engine(request, planned, transactional_db, settings, monkeypatch) -> Iterator[Engine]:
    """Return an engine whose processes also execute background tasks."""
    command = TASK_WORKERS[request.param]
    with running_engine(request.param, request, planned, settings, monkeypatch, command) as processes:
        yield processes


@pytest.fixture(params=["dbos", "temporal"])
def service_engine(request, planned, transactional_db, settings, monkeypatch) -> Iterator[Engine]:
    """Return each engine over another service."""
    with running_engine(request.param, request, planned, settings, monkeypatch) as processes:
        yield processes


# --- Tests whose process executes the runs


LOCAL_FIXTURES = {"idle_engine", "planned"}
# Fixtures of tests that start processes of an engine, or for which the engine makes no difference.
OTHER_FIXTURES = {"engine", "any_engine", "task_engine", "service_engine", "executor", "deployment", "queued", "away"}


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Repeat the tests whose process executes the runs over several engines, where every engine is tested.

    Those that choose their engines are left alone.
    """
    fixtures = set(metafunc.fixturenames)
    chosen = [marker.args[0] for marker in metafunc.definition.iter_markers("parametrize")]
    if EVERY_ENGINE and fixtures & LOCAL_FIXTURES and not fixtures & OTHER_FIXTURES and "local_engine" not in chosen:
        metafunc.parametrize("local_engine", engines_of(metafunc.definition.nodeid), indirect=True)


def engines_of(test: str) -> list[str]:
    """Return the engines over which a test passes: all of them, or in CI `process` and another one.

    Three of four repetitions differ only in the way a message reaches this process, and would take a quarter of the
    time on PostgreSQL. Which engine it is depends on the name of the test, so all are used and a failure repeats.
    """
    if DRILL or not IS_CI:
        return local_workers.NAMES
    own, *others = local_workers.NAMES
    return [own, others[crc32(test.encode()) % len(others)]]


@pytest.fixture(autouse=True)
def local_engine(request, monkeypatch) -> Iterator[None]:
    """Let this process be the worker of the engine of the test."""
    name = getattr(request, "param", "process")
    if name == "process":
        yield
        return
    request.getfixturevalue("idle_engine")
    monkeypatch.setattr(workers, "is_any_alive", lambda: True)
    with local_workers.local_worker(name, request, request.getfixturevalue("settings")):
        yield


@pytest.fixture(scope="package")
def dbos_folder(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("dbos")


@pytest.fixture(scope="package")
def dbos_worker(dbos_folder) -> Iterator[Runner]:
    with local_workers.dbos_worker(dbos_folder) as runner:
        yield runner


@pytest.fixture(scope="package")
def temporal_worker(temporal_server) -> Iterator[Runner]:
    with local_workers.temporal_worker(temporal_server) as runner:
        yield runner


def event_numbers(run: AgentRun) -> list[int]:
    return list(run.events.order_by("number").values_list("number", flat=True))
