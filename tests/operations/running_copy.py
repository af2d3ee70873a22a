"""Access to the database and processes of a running copy, and load on it."""

import contextlib
import itertools
import json
import sqlite3
import subprocess
import sys
import threading
import uuid
from collections.abc import Callable, Iterator

import httpx
import psutil
import psycopg

from agentcms.db.backends.sqlite3.base import WriterQueue
from agentcms.server.processes import PROJECT
from tests.served import Served, wait_until

NO_LIMIT = "1000000"  # of versions, for tests in which every acknowledged edit must be kept


def rows(copy: Served, question: str) -> list[tuple]:
    """Return the rows of a query on the copy's database."""
    if url := copy.environment.get("DATABASE_URL"):
        with psycopg.connect(url) as connection:
            return connection.execute(question).fetchall()
    with contextlib.closing(sqlite3.connect(copy.data_dir / "agentcms.sqlite3", timeout=20)) as connection:
        return connection.execute(question).fetchall()


def execute(copy: Served, *statements: str) -> None:
    """Execute SQL statements on the copy's database in one transaction."""
    if url := copy.environment.get("DATABASE_URL"):
        with psycopg.connect(url) as connection:
            for statement in statements:
                connection.execute(statement)
        return
    with contextlib.closing(sqlite3.connect(copy.data_dir / "agentcms.sqlite3", timeout=20)) as connection, connection:
        for statement in statements:
            connection.execute(statement)


# From referencing to referenced rows.
AGENT_TABLES = (
    "versions_app_activation",
    "versions_app_agentversion",
    "agents_app_agentindex",
    "agents_app_agent",
    "jobs_app_jobfile",
    "jobs_app_reportrow",
    "jobs_app_job",
)


def delete_agents_and_jobs(copy: Served) -> None:
    """Empty the tables of agents, versions and jobs, so that tests that share a copy can count their rows."""
    if "DATABASE_URL" in copy.environment:
        execute(copy, f"TRUNCATE {', '.join(AGENT_TABLES)} CASCADE")
    else:
        execute(copy, *(f"DELETE FROM {table}" for table in AGENT_TABLES))


def run_inside(copy: Served, call: str) -> str:
    """Call a function of `inside_copy` with the settings and the broker of the copy. Return what it prints."""
    code = f"from tests.operations.inside_copy import *; {call}"
    return copy.manage("shell", "-v", "0", "--no-imports", "-c", code)


def jobs(copy: Served, kind: str) -> list[tuple]:
    """Return state, attempts, progress, result and error of the jobs of a kind."""
    matches = rows(copy, f"SELECT state, attempts, done, result, error FROM jobs_app_job WHERE kind = '{kind}'")
    return [(*row[:3], json.loads(row[3]) if isinstance(row[3], str) else row[3], row[4]) for row in matches]


def wait_for_jobs(copy: Served, kind: str, count: int = 1, seconds: float = 60) -> list[tuple]:
    def all_done() -> bool:
        matches = jobs(copy, kind)
        return len(matches) >= count and all(state in ("done", "failed") for state, *_ in matches)

    wait_until(all_done, seconds, f"{count} jobs {kind}; there are {jobs(copy, kind)}")
    return jobs(copy, kind)


def assert_consistent(copy: Served) -> None:
    """Assert that the history of the copy is consistent."""
    copy.manage("check_history", JOB_LEASE="600")  # a slow machine must not lose the lease


def ready(copy: Served) -> dict[str, str]:
    with contextlib.suppress(httpx.HTTPError):
        return httpx.get(f"{copy.base_url}/readyz", timeout=30).json()["checks"]
    return {}


def is_ready(copy: Served) -> bool:
    return set(ready(copy).values()) == {"ok"}


@contextlib.contextmanager
def suspended(copy: Served, part: str) -> Iterator[None]:
    """Suspend one process of the copy during the block."""
    process = copy.processes_matching(part)[0]
    wait_until(lambda: suspend_if_idle(copy, process), what=f"a moment in which {part} holds no lock")
    try:
        yield
    finally:
        process.resume()


# A process suspended during a write would block other writers.
IN_A_TRANSACTION = """
SELECT count(*) FROM pg_stat_activity
WHERE datname = current_database() AND backend_type = 'client backend' AND pid <> pg_backend_pid()
AND xact_start IS NOT NULL
"""


def suspend_if_idle(copy: Served, process: psutil.Process) -> bool:
    """Suspend the process. Resume it and return False if it may be writing."""
    if "DATABASE_URL" in copy.environment:
        process.suspend()
        if rows(copy, IN_A_TRANSACTION) == [(0,)]:
            return True
        process.resume()
        return False
    path = copy.data_dir / "agentcms.sqlite3"
    with (
        contextlib.closing(WriterQueue(f"{path}-queue")) as queue,
        contextlib.closing(sqlite3.connect(path, timeout=20, isolation_level=None)) as connection,
    ):
        queue.acquire(20)
        connection.execute("BEGIN IMMEDIATE")  # no other process is writing or is next in the queue
        process.suspend()
    return True


WORKER = ("-m", "celery", "-A", "agentcms", "worker", "-P", "threads", "-c", "4")


@contextlib.contextmanager
def another_worker(
    copy: Served, command: tuple[str, ...] = WORKER, preexec_fn: Callable[[], None] | None = None
) -> Iterator[subprocess.Popen]:
    """Start a second worker beside the worker of the copy."""
    environment = {**copy.environment, "REDIS_URL": (copy.data_dir / "valkey.url").read_text()}
    log = copy.data_dir.with_name("second-worker.log")
    with log.open("wb") as out:
        process = subprocess.Popen(
            [sys.executable, *command], env=environment, cwd=PROJECT, stdout=out, stderr=out, preexec_fn=preexec_fn
        )
    try:
        wait_until(lambda: " ready." in log.read_text(), 60, "the second worker")
        yield process
    finally:
        process.kill()
        process.wait()


class ConcurrentEditors:
    """Threads that edit one agent each, with so many seconds between edits, and record acknowledged edits."""

    def __init__(self, copy: Served, count: int = 4, pause: float = 0) -> None:
        self.copy = copy
        self.pause = pause
        self.key = copy.keys["root"]
        self.agents = [f"edited-{uuid.uuid4().hex[:8]}-{number}" for number in range(count)]
        self.acknowledged: dict[str, list[int]] = {agent: [] for agent in self.agents}
        self.refused: list[httpx.Response] = []
        self.unanswered = 0
        self.stopping = threading.Event()
        self.threads = [threading.Thread(target=self.edit, args=[agent]) for agent in self.agents]

    def __enter__(self) -> "ConcurrentEditors":
        body = {"name": "Edited", "instructions": "", "model": {"provider": "demo", "name": "echo"}}
        with self.copy.client(self.key) as client:
            for agent in self.agents:
                assert client.post("/api/stored/agents", json={"id": agent, **body}).status_code == 201
        for thread in self.threads:
            thread.start()
        self.wait_for_more(8)
        return self

    def __exit__(self, *error: object) -> None:
        self.stopping.set()
        for thread in self.threads:
            thread.join(60)

    def edit(self, agent: str) -> None:
        with self.copy.client(self.key) as client:
            for number in itertools.count(1):
                if self.stopping.is_set():
                    return
                try:
                    answer = client.patch(f"/api/stored/agents/{agent}", json={"instructions": f"Edit {number}"})
                except httpx.HTTPError:
                    self.unanswered += 1
                    self.stopping.wait(0.05)
                    continue
                if answer.status_code == 200:
                    self.acknowledged[agent].append(number)
                    self.stopping.wait(self.pause)
                else:
                    self.refused.append(answer)
                    self.stopping.wait(0.05)

    @property
    def count(self) -> int:
        return sum(len(numbers) for numbers in self.acknowledged.values())

    def wait_for_more(self, count: int, seconds: float = 60) -> None:
        enough = self.count + count
        wait_until(lambda: self.count >= enough, seconds, f"{count} more edits; refused: {self.refused[-3:]}")

    def assert_nothing_lost(self) -> None:
        """Assert that all acknowledged edits are versions without gaps, and that refusals named the time to wait."""
        for answer in self.refused:
            assert answer.status_code == 503, answer.text
            assert int(answer.headers["Retry-After"]) > 0
        for agent, numbers in self.acknowledged.items():
            question = f"SELECT version_number, snapshot FROM versions_app_agentversion WHERE agent_id = '{agent}'"
            versions = dict(rows(self.copy, question + " ORDER BY version_number"))
            assert list(versions) == list(range(1, len(versions) + 1))
            stored = {json.loads(text)["instructions"] for text in versions.values()}
            assert {f"Edit {number}" for number in numbers} <= stored
