"""Copies of the application to measure: a database, a cache and the web server, on the loopback alone."""

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
from benchmarks.client import Line
from tests.served import free_port

PROJECT = Path(__file__).resolve().parent.parent
# What docs/operations.md recommends; what is acknowledged is on the disk.
POSTGRESQL = ("max_connections=200", "shared_buffers=256MB", "max_wal_size=4GB", "checkpoint_timeout=15min", "jit=off")


@dataclass
class Copy:
    """A running web server, what counts as its cost, and a key for it."""

    port: int
    servers: list[psutil.Process]
    key: str
    environment: dict[str, str]


@contextmanager
def database(sqlite: bool, folder: Path) -> Iterator[dict[str, str]]:
    """The environment that names an empty database."""
    if sqlite:
        yield {**os.environ, "DATABASE_URL": f"sqlite:///{folder}/agentcms.sqlite3"}
        return
    from tests import postgres

    postgres.FAST = POSTGRESQL
    with postgres.postgres() as url:
        yield {**os.environ, "DATABASE_URL": url}


@contextmanager
def prepared(sqlite: bool, agents: int, versions: int) -> Iterator[dict[str, str]]:
    """The environment of a copy that is filled and ready to be served."""
    with tempfile.TemporaryDirectory(prefix="agentcms-load-") as name, database(sqlite, Path(name)) as variables:
        folder = Path(name)
        with running_valkey(folder / "valkey", os.environ) as cache:
            own = {"DATA_DIR": name, "REDIS_URL": cache, "SECRET_KEY": secrets.token_hex(32), "DEMO_DATA": "no"}
            environment = {**variables, **own, "ALLOWED_HOSTS": "127.0.0.1"}
            environment["AGENTCMS_PASSWORD"] = "benchmark-password-1"
            environment["PYTHON"] = sys.executable
            run(environment, "deploy/start", "prepare")
            manage(environment, "create_user", "bench", "--superuser")
            manage(
                environment,
                "shell",
                "-v",
                "0",
                "-c",
                f"from benchmarks.filling import fill; fill({agents}, {versions})",
            )
            yield environment


@contextmanager
def served(environment: dict[str, str]) -> Iterator[Copy]:
    """The web server as production runs it; the throttle of the API is off, because it is what would be measured."""
    port = free_port()
    environment = {**environment, "PORT": str(port), "API_THROTTLE": "off"}
    key = manage(environment, "create_api_key", "bench")
    process = subprocess.Popen(["deploy/start", "web"], cwd=PROJECT, env=environment)
    try:
        wait_for(port)
        yield Copy(port, [psutil.Process(process.pid), *other_servers()], key, environment)
    finally:
        process.terminate()
        process.wait(60)


def other_servers() -> list[psutil.Process]:
    """The database's and the cache's, which count as well."""
    mine = psutil.Process().children(recursive=True)
    return [each for each in mine if "-D" in each.cmdline() or each.name().startswith("valkey")]


def manage(environment: dict[str, str], *arguments: str) -> str:
    return run(environment, sys.executable, "manage.py", *arguments)


def run(environment: dict[str, str], *command: str) -> str:
    """What a command prints."""
    done = subprocess.run(command, cwd=PROJECT, env=environment, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)} failed: {done.stdout[-1000:]} {done.stderr[-3000:]}")
    return done.stdout.strip()


def wait_for(port: int, path: str = "/healthz") -> None:
    """Until an address answers with success."""
    deadline = time.monotonic() + 60
    while True:
        try:
            with closing(Line(port)) as line:
                if line.ask(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n".encode())[0] == 200:
                    return
        except OSError:
            pass
        if time.monotonic() > deadline:
            raise RuntimeError("The web server did not start.")
        time.sleep(0.02)
