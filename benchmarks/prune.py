"""How long a transaction of the prune sweep lasts, at a million versions, while agents are activated meanwhile.

    .venv/bin/python -m tests.postgres -- .venv/bin/python -m benchmarks.prune --agents 100000 --versions 10

Runs on the database of DATABASE_URL, which it fills, or on SQLite in a temporary data folder.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from random import Random

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "agentcms.settings")
os.environ.setdefault("DATA_DIR", tempfile.mkdtemp(prefix="agentcms-benchmark-"))

import django

django.setup()

from django.core.management import call_command  # noqa: E402
from django.db import connections, transaction  # noqa: E402

from agents_app.models import Agent  # noqa: E402
from benchmarks.filling import fill  # noqa: E402
from jobs_app import runner  # noqa: E402
from jobs_app.models import Job  # noqa: E402
from versions_app import tasks  # noqa: E402
from versions_app.models import AgentVersion  # noqa: E402


@contextmanager
def timed_transactions() -> Iterator[list[float]]:
    """The seconds of every transaction that the sweep makes."""
    seconds: list[float] = []
    before = tasks.delete_surplus

    def timed(*arguments: object) -> int:
        began = time.perf_counter()
        transaction.on_commit(lambda: seconds.append(time.perf_counter() - began))
        return before(*arguments)  # type: ignore[arg-type]

    tasks.delete_surplus = timed  # type: ignore[assignment]
    try:
        yield seconds
    finally:
        tasks.delete_surplus = before


def activate_meanwhile(agents: int, versions: int, stop: threading.Event, count: list[int]) -> Callable[[], None]:
    def run() -> None:
        random = Random(1)
        while not stop.is_set():
            old = AgentVersion.objects.filter(
                agent_id=f"agent-{random.randrange(agents):06d}", version_number=random.randint(1, versions)
            ).first()
            try:
                if old is not None:
                    old.activate()
                    count[0] += 1
            except AgentVersion.DoesNotExist:
                count[1] += 1  # pruned between the look and the lock: said clearly, and nothing is broken
        connections.close_all()

    return run


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--agents", type=int, default=100_000)
    parser.add_argument("--versions", type=int, default=10)
    parser.add_argument("--limit", type=int, default=5)
    parser.add_argument("--filled", action="store_true", help="the database holds these agents already")
    parser.add_argument("--json", action="store_true", help="the figures again as the last line")
    options = parser.parse_args()
    if not options.filled:
        call_command("migrate", verbosity=0)
        fill(options.agents, options.versions)
    figures = swept(options.agents, options.versions, options.limit)
    for what, value in figures.items():
        print(f"{what}: {value:,.1f}")
    if options.json:
        print(json.dumps(figures))


def swept(agents: int, versions: int, limit: int) -> dict[str, float]:
    """The figures of one sweep, while others activate versions."""
    stop, count = threading.Event(), [0, 0]
    other = threading.Thread(target=activate_meanwhile(agents, versions, stop, count))
    other.start()
    with timed_transactions() as seconds:
        began = time.perf_counter()
        job = runner.run_claimed(str(Job.objects.create(kind=tasks.PRUNE, parameters={"limit": limit}).pk))
        total = time.perf_counter() - began
    stop.set()
    other.join()
    assert job is not None
    assert job.result is not None, job.error
    seconds.sort()
    return {
        "seconds in all": total,
        "transactions": len(seconds),
        "a transaction, median ms": seconds[len(seconds) // 2] * 1000,
        "a transaction, longest ms": seconds[-1] * 1000,
        "versions removed": job.result["removed"],
        "activations meanwhile": count[0],
        "activations of versions just removed, refused": count[1],
        "agents without their live version": Agent.objects.exclude(
            versions__pk__in=Agent.objects.values("active_version")
        ).count(),
    }


if __name__ == "__main__":
    main()
