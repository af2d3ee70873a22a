"""A temporary deployment to measure: database, cache and web server, on the loopback interface."""

from __future__ import annotations

import os
import secrets
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil  # type: ignore[import-untyped]

from agentcms.server.valkey import running_valkey
from benchmarks.client import Connection
from tests.served import free_port

PROJECT = Path(__file__).resolve().parent.parent
START_TIMEOUT = 60.0  # seconds
POLL_INTERVAL = 0.02
# The values that docs/operations.md recommends. Commits are durable, unlike in the tests.
POSTGRESQL_OPTIONS = (
    "max_connections=200",
    "shared_buffers=256MB",
    "max_wal_size=4GB",
    "checkpoint_timeout=15min",
    "jit=off",
)


@dataclass
class Deployment:
    """A running web server, the processes whose CPU is measured, and an API key."""

    port: int
    servers: list[psutil.Process]
    key: str
    environment: dict[str, str]


@contextmanager
def empty_database(sqlite: bool, folder: Path) -> Iterator[dict[str, str]]:
    """Provide an empty database and yield the environment that names it."""
    if sqlite:
        yield {**os.environ, "DATABASE_URL": f"sqlite:///{folder}/agentcms.sqlite3"}
        return
    from tests import postgres

    postgres.FAST = POSTGRESQL_OPTIONS
    with postgres.postgres() as url:
        yield {**os.environ, "DATABASE_URL": url}


@contextmanager
def prepared_environment(sqlite: bool, agents: int, versions: int) -> Iterator[dict[str, str]]:
    """Provide a migrated database with sample data, and a cache. Yield the environment of the web server."""
    with (
        tempfile.TemporaryDirectory(prefix="agentcms-load-") as name,
        empty_database(sqlite, Path(name)) as variables,
        running_valkey(Path(name) / "valkey", os.environ) as cache_url,
    ):
        environment = {
            **variables,
            "DATA_DIR": name,
            "REDIS_URL": cache_url,
            "SECRET_KEY": secrets.token_hex(32),
            "DEMO_DATA": "no",
            "ALLOWED_HOSTS": "127.0.0.1",
            "AGENTCMS_PASSWORD": "benchmark-password-1",
            "PYTHON": sys.executable,
        }
        run(environment, "deploy/start", "prepare")
        manage(environment, "create_user", "bench", "--superuser")
        code = f"from benchmarks.sample_data import fill; fill({agents}, {versions})"
        manage(environment, "shell", "-v", "0", "-c", code)
        yield environment


@contextmanager
def serving(environment: dict[str, str]) -> Iterator[Deployment]:
    """Run the web server as in production, but without the API throttle, which would limit the load."""
    port = free_port()
    environment = {**environment, "PORT": str(port), "API_THROTTLE": "off"}
    key = manage(environment, "create_api_key", "bench")
    process = subprocess.Popen(["deploy/start", "web"], cwd=PROJECT, env=environment)
    try:
        wait_until_serving(port)
        yield Deployment(port, [psutil.Process(process.pid), *storage_servers()], key, environment)
    finally:
        process.terminate()
        process.wait(60)


def storage_servers() -> list[psutil.Process]:
    """Return the processes of the database and the cache."""
    children = psutil.Process().children(recursive=True)
    return [process for process in children if "-D" in process.cmdline() or process.name().startswith("valkey")]


def manage(environment: dict[str, str], *arguments: str) -> str:
    return run(environment, sys.executable, "manage.py", *arguments)


def run(environment: dict[str, str], *command: str) -> str:
    """Run a command and return its output. Raise RuntimeError if it fails."""
    done = subprocess.run(command, cwd=PROJECT, env=environment, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)} failed: {done.stdout[-1000:]} {done.stderr[-3000:]}")
    return done.stdout.strip()


def wait_until_serving(port: int, path: str = "/healthz") -> None:
    """Wait until a path returns 200. Raise RuntimeError after a minute."""
    deadline = time.monotonic() + START_TIMEOUT
    request = f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n".encode()
    while True:
        try:
            with closing(Connection(port)) as connection:
                if connection.send(request)[0] == 200:
                    return
        except OSError:
            pass
        if time.monotonic() > deadline:
            raise RuntimeError("The web server did not start.")
        time.sleep(POLL_INTERVAL)
