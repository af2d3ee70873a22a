"""Throughput, latency and server CPU of six API operations under load from concurrent clients.

CPU is the CPU time of the web server, the database and the cache together, from /proc, per successful request.
"""

from __future__ import annotations

import itertools
import random
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import psutil  # type: ignore[import-untyped]

from benchmarks import TEXT
from benchmarks.calibration import reference_cpu_ms
from benchmarks.client import Connection, Request, RequestEncoder
from benchmarks.deployment import Deployment

WARM_UP = 0.4  # seconds
VERSION_LIMIT = 50  # the default of AGENT_VERSION_LIMIT

READ = "read an agent"
LIST_AGENTS = "list 100 agents"
EDIT_SPREAD = "edit one of 200 agents"
EDIT_AT_LIMIT = "edit at the version limit"
LIST_VERSIONS = "list 20 versions"
COMPARE = "compare two versions"
EDITS = (EDIT_SPREAD, EDIT_AT_LIMIT)

Operation = Callable[[], Request]


@dataclass
class Measurement:
    """The figures of one operation with one number of clients. Times are in milliseconds.

    `reference_ms` is the reference of the idle machine, `median_cpu` the median CPU of all runs.
    """

    operation: str
    clients: int
    per_second: float
    p50: float
    p95: float
    p99: float
    cpu: float
    errors: int
    reference_ms: float = 0.0
    median_cpu: float = 0.0


def measure_operations(
    deployment: Deployment, agents: int, clients: Sequence[int], runs: int, seconds: float
) -> list[Measurement]:
    """Measure each operation with each number of clients. Return the run with the least CPU of each.

    Other users of the hardware add CPU time, for seconds or minutes. So all combinations are measured in turn, several
    times. Edits come last, because they invalidate the caches of the reads.
    """
    encoder = RequestEncoder(deployment.port, deployment.key)
    fill_histories(encoder)
    combinations = list(itertools.product(build_operations(encoder, agents).items(), clients))
    measurements: dict[tuple[str, int], Measurement] = {}
    for are_edits in (False, True):
        group = [combination for combination in combinations if (combination[0][0] in EDITS) == are_edits]
        rounds = [
            [measure_with_reference(name, operation, deployment, count, seconds) for (name, operation), count in group]
            for _ in range(runs)
        ]
        best = map(select_least_cpu, zip(*rounds, strict=True))
        measurements |= {(measurement.operation, measurement.clients): measurement for measurement in best}
    results = [measurements[name, count] for (name, _), count in combinations]
    print("\n".join(map(table_row, results)), flush=True)
    return results


def measure_with_reference(
    name: str, operation: Operation, deployment: Deployment, clients: int, seconds: float
) -> Measurement:
    """Measure one run, and the speed of the idle machine before and after it."""
    before = reference_cpu_ms()
    measurement = measure(name, operation, deployment, clients, seconds)
    measurement.reference_ms = (before + reference_cpu_ms()) / 2
    return measurement


def select_least_cpu(runs: Sequence[Measurement]) -> Measurement:
    """Return the run with the least CPU, with the median CPU and the errors of all runs."""
    best, *_ = ordered = sorted(runs, key=lambda run: run.cpu)
    best.median_cpu = ordered[len(ordered) // 2].cpu
    best.errors = sum(run.errors for run in runs)
    return best


TABLE_HEADER = """| operation | clients | requests/s | p50 ms | p95 ms | p99 ms | CPU ms | median CPU ms | errors | reference ms |
| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |"""  # noqa: E501


def table_row(measurement: Measurement) -> str:
    m = measurement
    latency = f"{m.p50:.2f} | {m.p95:.2f} | {m.p99:.2f}"
    cpu = f"{m.cpu:.2f} | {m.median_cpu:.2f}"
    return (
        f"| {m.operation} | {m.clients} | {m.per_second:.0f} | {latency} | {cpu} | {m.errors} | {m.reference_ms:.0f} |"
    )


def build_operations(encoder: RequestEncoder, agents: int) -> dict[str, Operation]:
    """Return the operations by name. Each call of one returns the next request."""
    rng, count = random.Random(1), itertools.count()
    path = "/api/stored/agents"
    history = f"{path}/agent-000000/versions"
    newest, *_, oldest = encoder.fetch_json(f"{history}?perPage=50")["versions"]
    comparison = f"{history}/compare?from={oldest['id']}&to={newest['id']}"

    def edit(number: int) -> Request:
        return encoder.patch(f"{path}/agent-{number:06d}", {"instructions": f"{TEXT} edit {next(count)}"})

    pages = max(1, min(agents, 1000) // 100)
    return {
        READ: lambda: encoder.get(f"{path}/agent-{rng.randrange(agents):06d}"),
        LIST_AGENTS: lambda: encoder.get(f"{path}?perPage=100&page={rng.randrange(pages)}"),
        EDIT_SPREAD: lambda: edit(100 + rng.randrange(200)),
        EDIT_AT_LIMIT: lambda: edit(1),
        LIST_VERSIONS: lambda: encoder.get(f"{history}?perPage=20&page={rng.randrange(2)}"),
        COMPARE: lambda: encoder.get(comparison),
    }


def history_edits(encoder: RequestEncoder) -> list[Request]:
    """Return the edits that give two agents as many different versions as the limit allows."""
    return [
        encoder.patch(f"/api/stored/agents/{agent}", {"instructions": f"{TEXT} filled {number}"})
        for agent, number in itertools.product(("agent-000000", "agent-000001"), range(VERSION_LIMIT))
    ]


def fill_histories(encoder: RequestEncoder) -> None:
    connection = Connection(encoder.port)
    for request in history_edits(encoder):
        connection.send(request)
    connection.close()


def cpu_seconds(processes: list[psutil.Process]) -> float:
    """Return the CPU seconds used so far by these processes and their children, including children that ended."""
    total = 0.0
    for parent in processes:
        for process in [parent, *parent.children(recursive=True)]:
            times = process.cpu_times()
            total += times.user + times.system + times.children_user + times.children_system
    return total


@dataclass
class Recorder:
    """The durations and error statuses that the clients of one run collect."""

    seconds: list[float] = field(default_factory=list)
    error_statuses: list[int] = field(default_factory=list)
    recording: threading.Event = field(default_factory=threading.Event)
    stopping: threading.Event = field(default_factory=threading.Event)

    def repeat(self, operation: Operation, port: int) -> None:
        """Send requests until `stopping` is set. Record them while `recording` is set."""
        connection = Connection(port)
        while not self.stopping.is_set():
            request = operation()
            started = time.perf_counter()
            status, _ = connection.send(request)
            if not self.recording.is_set():
                continue
            if status == 200:
                self.seconds.append(time.perf_counter() - started)
            else:
                self.error_statuses.append(status)
        connection.close()


def measure(name: str, operation: Operation, deployment: Deployment, clients: int, seconds: float) -> Measurement:
    """Repeat an operation from concurrent clients for some seconds."""
    recorder = Recorder()
    threads = [threading.Thread(target=recorder.repeat, args=(operation, deployment.port)) for _ in range(clients)]
    for thread in threads:
        thread.start()
    time.sleep(WARM_UP)
    cpu, started = cpu_seconds(deployment.servers), time.perf_counter()
    recorder.recording.set()
    time.sleep(seconds)
    recorder.recording.clear()
    elapsed, cpu = time.perf_counter() - started, cpu_seconds(deployment.servers) - cpu
    recorder.stopping.set()
    for thread in threads:
        thread.join()
    return summarize(name, clients, recorder, elapsed, cpu)


def summarize(name: str, clients: int, recorder: Recorder, elapsed: float, cpu: float) -> Measurement:
    durations = sorted(recorder.seconds) or [float("nan")]
    count = len(durations)
    p50, p95, p99 = (durations[min(count - 1, int(count * share))] * 1000 for share in (0.5, 0.95, 0.99))
    errors = len(recorder.error_statuses)
    return Measurement(name, clients, count / elapsed, p50, p95, p99, cpu / count * 1000, errors)
