"""Duration of the transactions of the nightly retention job with a million versions and concurrent activations.

    .venv/bin/python -m tests.postgres -- .venv/bin/python -m benchmarks.prune --agents 100000 --versions 10

Uses the database of DATABASE_URL and adds agents to it, or SQLite in a temporary data folder.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from random import Random

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "agentcms.settings")
os.environ.setdefault("DATA_DIR", tempfile.mkdtemp(prefix="agentcms-benchmark-"))

import django

django.setup()

from django.core.management import call_command  # noqa: E402
from django.db import connections, transaction  # noqa: E402

from agents_app.models import Agent  # noqa: E402
from benchmarks.sample_data import fill  # noqa: E402
from jobs_app import runner  # noqa: E402
from jobs_app.models import Job  # noqa: E402
from versions_app import pruning, retention  # noqa: E402
from versions_app.models import AgentVersion  # noqa: E402


@contextmanager
def timed_transactions() -> Iterator[list[float]]:
    """Measure the transactions of the retention job. Yield the list of their seconds."""
    seconds: list[float] = []
    original = retention.delete_surplus

    def timed(*arguments: object) -> int:
        started = time.perf_counter()
        transaction.on_commit(lambda: seconds.append(time.perf_counter() - started))
        return original(*arguments)  # type: ignore[arg-type]

    # The task has a reference of its own to the function.
    vars(pruning)["delete_surplus"] = timed
    try:
        yield seconds
    finally:
        vars(pruning)["delete_surplus"] = original


@dataclass
class Activations:
    """A loop that activates random versions, and its counters."""

    agents: int
    versions: int
    stopping: threading.Event = field(default_factory=threading.Event)
    succeeded: int = 0
    rejected: int = 0

    def run(self) -> None:
        rng = Random(1)
        while not self.stopping.is_set():
            agent_id, number = f"agent-{rng.randrange(self.agents):06d}", rng.randint(1, self.versions)
            version = AgentVersion.objects.filter(agent_id=agent_id, version_number=number).first()
            if version is None:
                continue
            try:
                version.activate()
                self.succeeded += 1
            except AgentVersion.DoesNotExist:
                self.rejected += 1  # the job deleted the version after it was selected
        connections.close_all()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--agents", type=int, default=100_000)
    parser.add_argument("--versions", type=int, default=10)
    parser.add_argument("--limit", type=int, default=5)
    parser.add_argument("--filled", action="store_true", help="the database already has these agents")
    parser.add_argument("--json", action="store_true", help="print the figures as JSON in the last line")
    options = parser.parse_args()
    if not options.filled:
        call_command("migrate", verbosity=0)
        fill(options.agents, options.versions)
    figures = measure_prune(options.agents, options.versions, options.limit)
    for label, value in figures.items():
        print(f"{label}: {value:,.1f}")
    if options.json:
        print(json.dumps(figures))


def measure_prune(agents: int, versions: int, limit: int) -> dict[str, float]:
    """Run the retention job once while another thread activates versions."""
    activations = Activations(agents, versions)
    thread = threading.Thread(target=activations.run)
    thread.start()
    with timed_transactions() as seconds:
        started = time.perf_counter()
        job = runner.run_claimed(str(Job.objects.create(kind=pruning.PRUNE, parameters={"limit": limit}).pk))
        total = time.perf_counter() - started
    activations.stopping.set()
    thread.join()
    assert job is not None
    assert job.result is not None, job.error
    seconds.sort()
    without_live_version = Agent.objects.exclude(versions__pk__in=Agent.objects.values("active_version"))
    return {
        "total, s": total,
        "transactions": len(seconds),
        "transaction, median ms": seconds[len(seconds) // 2] * 1000,
        "transaction, max ms": seconds[-1] * 1000,
        "versions deleted": job.result["removed"],
        "concurrent activations": activations.succeeded,
        "rejected activations of deleted versions": activations.rejected,
        "agents without a live version": without_live_version.count(),
    }


if __name__ == "__main__":
    main()
