"""The real application as real processes, for tests that go in by HTTP."""

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

STARTED = ("Ctrl-C stops everything", " ready.")  # the last words of the start, and those of the worker
PASSWORD = "a-long-enough-password-7"


def wait_until(condition: Callable[[], object], seconds: float = 30, what: str = "") -> None:
    """Look again and again instead of sleeping for a while."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"Not within {seconds} s: {what or condition}"
        time.sleep(0.02)


def hear_hang_ups() -> None:
    """Tests that were started by `nohup` hand on its deafness."""
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


WORKER = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
PORTS = itertools.count(10_000 + 2_000 * (WORKER % 11) + os.getpid() % 1_000)


def free_port() -> int:
    """Of a range that this worker of the tests has for itself, and from which the kernel gives nobody a port."""
    for port in PORTS:
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port
    raise AssertionError("Ports do not end.")


@contextlib.contextmanager
def own_database() -> Iterator[dict[str, str]]:
    """The environment that names a database of our own on the server that the tests run on."""
    server = os.environ.get("DATABASE_URL", "")
    if not server.startswith("postgres"):
        yield {}
        return
    name = f"served_{uuid.uuid4().hex[:12]}"
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
        try:
            yield {"DATABASE_URL": f"{server.rpartition('/')[0]}/{name}"}
        finally:
            connection.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))


class Served:
    """One copy of the application with a port and a data folder of its own."""

    def __init__(self, data_dir: Path, **environment: str) -> None:
        self.data_dir = data_dir
        self.port = free_port()
        self.base_url = f"http://127.0.0.1:{self.port}"
        outside = {"DJANGO_SETTINGS_MODULE", "TEST_DATA_DIR", "DATABASE_URL", "REDIS_URL", "CELERY_BROKER_URL"}
        kept = {name: value for name, value in os.environ.items() if name not in outside}
        own = {
            "DATA_DIR": str(data_dir),
            "PORT": str(self.port),
            "DEMO_DATA": "no",
            "NIGHTLY_HOUR": str((datetime.now(UTC) + timedelta(hours=12)).hour),  # not while a test counts jobs
        }
        self.environment = {**kept, **own, **environment}
        self.log = data_dir.with_name(f"{data_dir.name}.log")
        self.process: subprocess.Popen[bytes] | None = None

    # --- Start and end

    def launch(self) -> subprocess.Popen[bytes]:
        """Start it without waiting for an answer."""
        with self.log.open("ab") as log:
            command = [sys.executable, "-m", "agentcms.server.run"]
            self.process = subprocess.Popen(
                command, env=self.environment, cwd=PROJECT, stdout=log, stderr=log, preexec_fn=hear_hang_ups
            )
        return self.process

    def start(self) -> "Served":
        """Start it and wait until everything runs."""
        written = len(self.said())
        process = self.launch()
        wait_until(
            lambda: process.poll() is not None or all(sign in self.said()[written:] for sign in STARTED),
            120,
            f"the first page and the worker; see {self.log}",
        )
        assert process.poll() is None, self.said()
        return self

    def stop(self) -> int:
        """End it as Ctrl-C and TERM do; its exit code."""
        if self.process is None:
            return 0
        self.process.terminate()
        return self.process.wait(30)

    def kill(self) -> None:
        """End everything at once with kill -9, as a power cut would."""
        everybody = self.processes()
        for process in everybody:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
        if self.process:
            self.process.wait(30)
        psutil.wait_procs(everybody, 10)

    # --- Look inside

    def said(self) -> str:
        return self.log.read_text(errors="replace") if self.log.exists() else ""

    def processes(self) -> list[psutil.Process]:
        """The supervisor, its children, and theirs."""
        if self.process is None or self.process.poll() is not None:
            return []
        supervisor = psutil.Process(self.process.pid)
        return [supervisor, *supervisor.children(recursive=True)]

    def named(self, part: str) -> list[psutil.Process]:
        """The processes whose command line has this part."""
        found = []
        for process in self.processes():
            with contextlib.suppress(psutil.NoSuchProcess):
                if part in " ".join(process.cmdline()):
                    found.append(process)
        return found

    def answers(self) -> bool:
        with contextlib.suppress(httpx.HTTPError):
            return httpx.get(self.base_url, timeout=5).status_code < 500
        return False

    # --- Set up

    def manage(self, *arguments: str, **environment: str) -> str:
        """What a management command prints."""
        command = [sys.executable, "manage.py", *arguments]
        done = subprocess.run(
            command, env={**self.environment, **environment}, cwd=PROJECT, capture_output=True, text=True, timeout=60
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def create_user(self, name: str, *options: str, password: str = PASSWORD) -> None:
        """For example `create_user("ann", "--role", "editor")`."""
        self.manage("create_user", name, *options, AGENTCMS_PASSWORD=password)

    def create_api_key(self, name: str, *options: str) -> str:
        """A key of this user, to be sent as `Authorization: Bearer …`."""
        return self.manage("create_api_key", name, *options)

    def client(self, key: str = "") -> httpx.Client:
        """A client for this copy that shows the key."""
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        return httpx.Client(base_url=self.base_url, headers=headers, timeout=60)


@contextlib.contextmanager
def serving(folder: Path, **environment: str) -> Iterator[Served]:
    """A running copy, on a database of its own, that is certain to end."""
    with own_database() as database:
        copy = Served(folder, **database, **environment)
        try:
            yield copy.start()
        finally:
            everybody = copy.processes()
            copy.stop()
            for process in everybody:
                with contextlib.suppress(psutil.NoSuchProcess):
                    process.kill()
