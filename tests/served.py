"""The real application in real processes, for tests that go through HTTP."""

import contextlib
import itertools
import os
import signal
import socket
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx
import psutil
import psycopg
from psycopg import sql

from agentcms.server.processes import PROJECT
from tests.fork_server import Fork

Process = subprocess.Popen[bytes] | Fork
START_MESSAGES = ("Ctrl-C stops everything", " ready.")  # the last line of the start, and that of the worker
START_TIMEOUT = 120.0  # seconds
MIN_POLL_INTERVAL = 0.01  # seconds
MAX_POLL_INTERVAL = 0.1
PASSWORD = "a-long-enough-password-7"
# What the tests set for themselves. A copy has settings of its own.
TEST_VARIABLES = {"DJANGO_SETTINGS_MODULE", "TEST_DATA_DIR", "DATABASE_URL", "REDIS_URL", "CELERY_BROKER_URL"}
WORKER_NUMBER = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
# A range of its own for each worker of the tests, below the range from which the kernel takes ports.
PORTS = itertools.count(10_000 + 2_000 * (WORKER_NUMBER % 11) + os.getpid() % 1_000)


def wait_until(condition: Callable[[], object], seconds: float = 30, what: str | Callable[[], object] = "") -> None:
    """Poll the condition until it is true. Fail after so many seconds, with a text or with the state at that time.

    The interval grows with the time that has passed. Otherwise polling would slow down what it waits for: most
    conditions are queries or requests.
    """
    began = time.monotonic()
    while not condition():
        passed = time.monotonic() - began
        if passed >= seconds:
            raise AssertionError(f"Not within {seconds} s: {what() if callable(what) else what or condition}")
        time.sleep(min(max(passed / 10, MIN_POLL_INTERVAL), MAX_POLL_INTERVAL))


def reset_sighup() -> None:
    """Restore the default action of SIGHUP, which `nohup` ignores in all child processes."""
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


def free_port() -> int:
    for port in PORTS:
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port
    raise AssertionError("No port is free.")


@contextlib.contextmanager
def own_database(template: str = "template1") -> Iterator[dict[str, str]]:
    """Create a database on the server of the tests and yield the variable that names it. Yield none for SQLite."""
    server = os.environ.get("DATABASE_URL", "")
    if not server.startswith("postgres"):
        yield {}
        return
    name = f"served_{uuid.uuid4().hex[:12]}"
    create = sql.SQL("CREATE DATABASE {} TEMPLATE {}").format(sql.Identifier(name), sql.Identifier(template))
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(create)
        try:
            yield {"DATABASE_URL": f"{server.rpartition('/')[0]}/{name}"}
        finally:
            connection.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))


class Served:
    """A copy of the application with its own port and data folder."""

    def __init__(self, data_dir: Path, **environment: str) -> None:
        self.data_dir = data_dir
        self.port = free_port()
        self.base_url = f"http://127.0.0.1:{self.port}"
        inherited = {name: value for name, value in os.environ.items() if name not in TEST_VARIABLES}
        own = {
            "DATA_DIR": str(data_dir),
            "PORT": str(self.port),
            "DEMO_DATA": "no",
            # No nightly job starts while a test counts jobs.
            "NIGHTLY_HOUR": str((datetime.now(UTC) + timedelta(hours=12)).hour),
        }
        self.environment = {**inherited, **own, **environment}
        self.keys: dict[str, str] = {}
        self.log = data_dir.with_name(f"{data_dir.name}.log")
        self.process: Process | None = None

    # --- Start and stop

    def launch(self) -> Process:
        """Start the copy without waiting until it responds."""
        self.process = self.start_module("agentcms.server.run", log=self.log)
        return self.process

    def start_module(
        self,
        *arguments: str,
        log: Path,
        errors: Path | None = None,
        start_new_session: bool = False,
        **environment: str,
    ) -> Process:
        """Start `python -m` with these arguments, and with the environment of this copy."""
        with log.open("ab") as output, (errors or log).open("ab") as error_output:
            return subprocess.Popen(
                [sys.executable, "-m", *arguments],
                env={**self.environment, **environment},
                cwd=PROJECT,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=error_output,
                start_new_session=start_new_session,
                preexec_fn=reset_sighup,
            )

    def start(self) -> "Served":
        """Start the copy and wait until web server and worker are ready."""
        offset = len(self.log_text())
        process = self.launch()
        wait_until(
            lambda: process.poll() is not None or all(text in self.log_text()[offset:] for text in START_MESSAGES),
            START_TIMEOUT,
            f"the first page and the worker; see {self.log}",
        )
        assert process.poll() is None, self.log_text()
        return self

    def stop(self) -> int:
        """Stop the copy as Ctrl-C and SIGTERM do. Return the exit code."""
        if self.process is None:
            return 0
        self.process.terminate()
        return self.process.wait(30)

    def kill(self) -> None:
        """Kill all processes at once with SIGKILL, as a power failure would."""
        processes = self.processes()
        for process in processes:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
        if self.process:
            self.process.wait(30)
        psutil.wait_procs(processes, 10)

    # --- State

    def log_text(self) -> str:
        return self.log.read_text(errors="replace") if self.log.exists() else ""

    def processes(self) -> list[psutil.Process]:
        """Return the supervisor and all its descendants."""
        if self.process is None or self.process.poll() is not None:
            return []
        supervisor = psutil.Process(self.process.pid)
        return [supervisor, *supervisor.children(recursive=True)]

    def processes_matching(self, text: str) -> list[psutil.Process]:
        """Return the processes whose command line contains the text."""
        matches = []
        for process in self.processes():
            with contextlib.suppress(psutil.NoSuchProcess):
                if text in " ".join(process.cmdline()):
                    matches.append(process)
        return matches

    def responds(self) -> bool:
        with contextlib.suppress(httpx.HTTPError):
            return httpx.get(self.base_url, timeout=5).status_code < 500
        return False

    # --- Data

    def manage(self, *arguments: str, **environment: str) -> str:
        """Run a management command and return its output."""
        name = f"{self.data_dir.name}-{uuid.uuid4().hex[:8]}"
        output, errors = (self.data_dir.with_name(f"{name}.{kind}") for kind in ("output", "errors"))
        process = self.start_module("manage", *arguments, log=output, errors=errors, **environment)
        try:
            assert process.wait(START_TIMEOUT) == 0, errors.read_text()
        finally:
            process.kill()
        return output.read_text().strip()

    def create_user(self, name: str, *options: str, password: str = PASSWORD) -> None:
        """Create a user, for example with `create_user("ann", "--role", "editor")`."""
        self.manage("create_user", name, *options, AGENTCMS_PASSWORD=password)

    def create_api_key(self, name: str, *options: str) -> str:
        """Return a new API key of this user."""
        return self.manage("create_api_key", name, *options)

    def client(self, key: str = "") -> httpx.Client:
        """Return a client that sends the API key with each request."""
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        return httpx.Client(base_url=self.base_url, headers=headers, timeout=60)


@contextlib.contextmanager
def running(copy: Served) -> Iterator[Served]:
    """Start the copy and make sure that it ends with the block."""
    try:
        yield copy.start()
    finally:
        processes = copy.processes()
        copy.stop()
        for process in processes:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()


@contextlib.contextmanager
def serving(folder: Path, **environment: str) -> Iterator[Served]:
    """Run a copy on an empty database of its own."""
    with own_database() as database, running(Served(folder, **database, **environment)) as copy:
        yield copy
