"""How long a transaction of the prune sweep lasts, at a million versions, while agents are activated meanwhile.

    .venv/bin/python -m tests.postgres -- .venv/bin/python -m benchmarks.prune --agents 100000 --versions 10

Runs on the database of DATABASE_URL, which it fills, or on SQLite in a temporary data folder.
"""

from __future__ import annotations

import argparse
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
from django.db import connection, connections, transaction  # noqa: E402
from django.db.models import QuerySet  # noqa: E402

from agentcms.wire import digest  # noqa: E402
from agents_app.models import Agent  # noqa: E402
from jobs_app import work  # noqa: E402
from jobs_app.models import Job  # noqa: E402
from versions_app import tasks  # noqa: E402
from versions_app.models import Activation, AgentVersion  # noqa: E402

POINT = """
    UPDATE agents_app_agent SET active_version_id = v.id, head_version_id = v.id, last_version_number = %s
    FROM versions_app_agentversion v WHERE v.agent_id = agents_app_agent.id AND v.version_number = %s"""


def fill(agents: int, versions: int) -> None:
    """Copy one agent's row and history many times, beneath the application: only sizes and pointers matter here."""
    Agent.objects.create(
        id="template", name="Template", instructions="word " * 400, model={"provider": "demo", "name": "echo"}
    )
    template = Agent.objects.get(pk="template")
    text = template.snapshot_text
    for start in range(0, agents, 1000):
        batch = [
            Agent(**{**configuration(template), "id": f"agent-{n:06d}"})
            for n in range(start, min(start + 1000, agents))
        ]
        with transaction.atomic():
            QuerySet.bulk_create(Agent.objects.all(), batch)
            made = [version(agent, number, text) for agent in batch for number in range(1, versions + 1)]
            QuerySet.bulk_create(AgentVersion.objects.all(), made, batch_size=2000)
            Activation.objects.bulk_create([activation(each) for each in made if each.version_number == versions])
    with connection.cursor() as cursor:
        cursor.execute(POINT, [versions, versions])


def configuration(agent: Agent) -> dict[str, object]:
    return {name: getattr(agent, name) for name in ("name", "instructions", "model")}


def version(agent: Agent, number: int, text: str) -> AgentVersion:
    return AgentVersion(agent=agent, version_number=number, snapshot_text=text, snapshot_hash=digest(text))


def activation(version: AgentVersion) -> Activation:
    return Activation(agent_id=version.agent_id, to_version_id=version.pk, to_version_number=version.version_number)


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
    parser.add_argument("--agents", type=int, default=10_000)
    parser.add_argument("--versions", type=int, default=10)
    parser.add_argument("--limit", type=int, default=5)
    options = parser.parse_args()
    call_command("migrate", verbosity=0)
    began = time.perf_counter()
    fill(options.agents, options.versions)
    if connection.vendor == "postgresql":
        connection.cursor().execute("ANALYZE")
    print(f"filled {options.agents} agents with {options.versions} versions in {time.perf_counter() - began:.0f} s")

    stop, count = threading.Event(), [0, 0]
    other = threading.Thread(target=activate_meanwhile(options.agents, options.versions, stop, count))
    other.start()
    with timed_transactions() as seconds:
        began = time.perf_counter()
        job = work.run(str(Job.objects.create(kind=tasks.PRUNE, parameters={"limit": options.limit}).pk))
        total = time.perf_counter() - began
    stop.set()
    other.join()
    seconds.sort()
    assert job is not None
    print(f"job {job.state} {job.result} in {total:.1f} s, {len(seconds)} transactions")
    print(f"transaction: median {seconds[len(seconds) // 2] * 1000:.0f} ms, longest {seconds[-1] * 1000:.0f} ms")
    print(f"activations meanwhile: {count[0]}, of versions just pruned: {count[1]}")
    broken = (
        Agent.objects.exclude(versions__pk__in=Agent.objects.values("active_version")).exclude(pk="template").count()
    )
    print(f"agents without their live version: {broken}")


if __name__ == "__main__":
    main()
