"""The time until another worker continues the runs of a killed one, and the memory of a worker.

    python -m benchmarks.takeover [--kills 10] [--json]

Starts a web server and two workers on a temporary PostgreSQL and Valkey (tests/durable/deployment.py), and kills the
workers in turn while they execute runs with tools.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import psutil  # type: ignore[import-untyped]

from agentcms.server.processes import PROJECT
from benchmarks.deployment import empty_database
from tests.durable import deployment as processes
from tests.durable.deployment import Broker, Deployment, wait_for_readers
from tests.operations.running_copy import rows
from tests.served import Process, Served, wait_until

WORKERS = ("worker", "second worker")
RUNS = 20
MIN_RUNS = 3  # of the worker that is killed
CALLS = 10
MAX_ATTEMPTS = 1  # a run that has lost two processes in one step fails with the third
START_TIMEOUT = 120  # seconds
CLAIMS = "SELECT run_id, claimed_at FROM runs_app_runclaim"
HELD = "SELECT id FROM runs_app_agentrun WHERE status = 'running' AND holder LIKE '%:{pid}:%'"
ENDED = "SELECT id FROM runs_app_agentrun WHERE finished_at IS NOT NULL"
WEAKENED = f"SELECT COUNT(*) FROM runs_app_agentrun WHERE finished_at IS NULL AND attempts > {MAX_ATTEMPTS}"


@contextmanager
def deployed() -> Iterator[Deployment]:
    """Run a web server and two workers."""
    processes.COMMANDS[WORKERS[1]] = processes.COMMANDS["worker"]
    with tempfile.TemporaryDirectory() as name, empty_database(False, Path(name)) as environment:
        broker = Broker(Path(name) / "valkey")
        deployment = Deployment(Served(Path(name) / "var", DATABASE_URL=environment["DATABASE_URL"]), broker)
        copy = deployment.copy
        try:
            command = [sys.executable, "-m", "agentcms.server.prepare"]
            subprocess.run(command, env=copy.environment, cwd=PROJECT, check=True, stdout=subprocess.DEVNULL)
            copy.create_user("root", "--superuser")
            copy.keys["root"] = copy.create_api_key("root")
            deployment.start("web", *WORKERS)
            wait_until(copy.responds, START_TIMEOUT, "the web server")
            wait_until(lambda: copy.log_text().count(" ready.") == len(WORKERS), START_TIMEOUT, "the workers")
            deployment.create_agent(CALLS)
            yield deployment
        finally:
            deployment.stop()
            broker.remove()


def measure(kills: int) -> dict[str, float]:
    """Return the seconds from a kill to the claim of each run, the lost runs, and the memory of the workers."""
    with deployed() as deployment:
        waits, memory = [], 0.0
        for kill in range(kills):
            waits += kill_worker(deployment, WORKERS[kill % 2])
            memory = max(memory, *map(worker_megabytes, deployment.parts.values()))
        wait_for_readers(deployment.readers, START_TIMEOUT)
        for reader in deployment.readers:
            reader.assert_complete(CALLS)  # nothing is lost, and no finished step was repeated
        return {
            "kills of a worker": kills,
            "runs": len(deployment.readers),
            "runs taken over": len(waits),
            "taken over after, median, s": statistics.median(waits),
            "taken over after, p95 (goal 10, prototype 6.5), s": statistics.quantiles(waits, n=20)[-1],
            f"memory of a worker with up to {RUNS} runs (PSS; goal 150, prototype 143), MB": memory,
            "load of the machine by all programs": os.getloadavg()[0],
        }


def kill_worker(deployment: Deployment, name: str) -> list[float]:
    """Kill a worker under runs, and start it again. Return the seconds until each of its runs was claimed."""
    query = HELD.format(pid=deployment.parts[name].pid)

    def is_busy() -> bool:
        deployment.start_runs(RUNS - len(deployment.unfinished()))
        return len(rows(deployment.copy, query)) >= MIN_RUNS and rows(deployment.copy, WEAKENED) == [(0,)]

    wait_until(is_busy, START_TIMEOUT, f"runs of the {name}")
    ready = deployment.copy.log_text().count(" ready.")
    run_ids = {row[0] for row in rows(deployment.copy, query)}
    killed_at = datetime.now(UTC)
    deployment.kill(name)
    wait_until(lambda: not unclaimed(deployment, run_ids, killed_at), START_TIMEOUT, "all claims")
    claims = first_claims(deployment, killed_at)
    deployment.start(name)
    wait_until(lambda: deployment.copy.log_text().count(" ready.") > ready, START_TIMEOUT, f"the {name}")
    return [(claims[run_id] - killed_at).total_seconds() for run_id in run_ids & claims.keys()]


def unclaimed(deployment: Deployment, run_ids: set[object], since: datetime) -> set[object]:
    """Return the runs that wait for another worker. Some have ended just before the kill."""
    ended = {run_id for (run_id,) in rows(deployment.copy, ENDED)}
    return run_ids - ended - first_claims(deployment, since).keys()


def first_claims(deployment: Deployment, since: datetime) -> dict[object, datetime]:
    """Return the time of the first claim of each run since then."""
    later = sorted(((at, run_id) for run_id, at in rows(deployment.copy, CLAIMS) if at > since), reverse=True)
    return {run_id: at for at, run_id in later}


def worker_megabytes(process: Process) -> float:
    """Return the memory of a worker, and 0 for another process."""
    measured = psutil.Process(process.pid)
    return measured.memory_full_info().pss / 1e6 if "agentcms.server.worker" in measured.cmdline() else 0.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--json", action="store_true", help="print the figures as one line of JSON")
    options = parser.parse_args()
    started = time.monotonic()
    figures = measure(options.kills)
    if options.json:
        print(json.dumps(figures))
        return
    for name, value in figures.items():
        print(f"{name}: {value:.2f}")
    print(f"Measured in {time.monotonic() - started:.0f} s.")


if __name__ == "__main__":
    main()
