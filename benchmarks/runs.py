"""CPU, first text and throughput of runs under load from concurrent API clients.

A local model server answers at once, so these are the costs of everything but the model, including its client. Each
run and its events are stored. CPU is the CPU time of the web server, the database and the cache together, per run.
First text is the time from the first piece that the model sends to the first text that the client receives.
"""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field

from benchmarks.calibration import reference_cpu_ms
from benchmarks.client import Connection, Request, RequestEncoder
from benchmarks.deployment import Deployment, manage, prepared_environment, serving
from benchmarks.load import cpu_seconds
from benchmarks.model_server import model_server

GENERATE, STREAM = "generate", "stream"
DATABASES = {"PostgreSQL": False, "SQLite": True}  # and whether it is SQLite
MIN_SECONDS = 2.0  # of a measurement; one run takes much longer than a request of another kind
LONG_ANSWERS = (1000, 8000)  # pieces of text
SHORT_ANSWER = 10
START_UP = 5.0  # seconds
WARM_UP = 0.5  # seconds
MODEL = {"provider": "mistral", "name": "instant"}
TIMESTAMP = re.compile(rb'"text":"(\d+\.\d{6}) ')
# All clients are one user, who asks one agent.
ENVIRONMENT = dict.fromkeys(("RUNS_PER_USER", "RUNS_PER_AGENT", "RUN_STREAMS_PER_USER"), "1000")


@dataclass
class RunMeasurement:
    """The figures of one operation with one number of clients. Times are in milliseconds.

    `database_cpu` is the part of `cpu` that the database and the cache used.
    """

    operation: str
    clients: int
    per_second: float
    cpu: float
    database_cpu: float
    first_text_p50: float | None
    first_text_p95: float | None
    errors: int
    reference_ms: float = 0.0


@dataclass
class PieceMeasurement:
    """The CPU milliseconds per piece of text of a long answer."""

    pieces: int
    cpu: float
    reference_ms: float


@dataclass
class Recorder:
    """The runs that the clients of one measurement count."""

    finished: int = 0
    errors: int = 0
    first_texts: list[float] = field(default_factory=list)  # milliseconds
    recording: threading.Event = field(default_factory=threading.Event)
    stopping: threading.Event = field(default_factory=threading.Event)

    @contextmanager
    def repeating(self, send: Callable[[Connection], float | None], port: int, clients: int) -> Iterator[None]:
        """Start runs from concurrent clients during the block, and for some time before it."""
        threads = [threading.Thread(target=self.repeat, args=(send, port)) for _ in range(clients)]
        for thread in threads:
            thread.start()
        time.sleep(WARM_UP)
        yield
        self.stopping.set()
        for thread in threads:
            thread.join()

    def repeat(self, send: Callable[[Connection], float | None], port: int) -> None:
        """Start runs, one after the other, until `stopping` is set. Record them while `recording` is set."""
        while not self.stopping.is_set():
            try:
                with closing(Connection(port)) as connection:
                    while not self.stopping.is_set():
                        self.record(send(connection))
            except (RunFailed, OSError):
                self.errors += 1

    def record(self, first_text: float | None) -> None:
        if self.recording.is_set():
            self.finished += 1
            self.first_texts += [] if first_text is None else [first_text]


class RunFailed(Exception):
    """The response to a run that did not succeed."""


@contextmanager
def prepared_deployment(sqlite: bool) -> Iterator[Deployment]:
    """Serve a database with an agent that answers at once."""
    with prepared_environment(sqlite, 10, 1) as environment, model_server() as variables:
        code = f"from agents_app.models import Agent; Agent(id='bench', name='Bench', model={MODEL!r}).save()"
        manage(environment, "shell", "-v", "0", "-c", code)
        with serving({**environment, **variables, **ENVIRONMENT}) as deployment:
            yield deployment


def measure_runs(
    deployment: Deployment, clients: Sequence[int], runs: int, seconds: float
) -> tuple[list[RunMeasurement], list[PieceMeasurement]]:
    """Measure each operation with each number of clients in turn, several times. Return those with the least CPU."""
    encoder = RequestEncoder(deployment.port, deployment.key)
    operations = {GENERATE: generate(encoder), STREAM: stream(encoder, SHORT_ANSWER)}
    combinations = [(name, count) for name in operations for count in clients]
    for name, send in operations.items():  # both processes import what only runs need
        measure(name, send, deployment, min(max(clients), 8), START_UP)
    rounds = [
        [measure(name, operations[name], deployment, count, seconds) for name, count in combinations]
        for _ in range(runs)
    ]
    measurements = [select_least_cpu(same) for same in zip(*rounds, strict=True)]
    piece_rounds = [
        [measure_pieces(encoder, deployment, pieces) for pieces in LONG_ANSWERS] for _ in range(max(1, runs // 2))
    ]
    pieces = [min(same, key=lambda measured: measured.cpu) for same in zip(*piece_rounds, strict=True)]
    return measurements, pieces


def generate(encoder: RequestEncoder) -> Callable[[Connection], None]:
    request = encoder.post("/api/agents/bench/generate", {"messages": str(SHORT_ANSWER)})

    def send(connection: Connection) -> None:
        status, body = connection.send(request)
        if status != 200 or json.loads(body)["usage"]["outputTokens"] != SHORT_ANSWER:
            raise RunFailed(body)

    return send


def stream(encoder: RequestEncoder, pieces: int) -> Callable[[Connection], float]:
    request = encoder.post("/api/agents/bench/stream", {"messages": str(pieces)})
    return lambda connection: stream_run(connection, request)


def stream_run(connection: Connection, request: Request) -> float:
    """Read the stream of a run to its end. Return the milliseconds by which its first text came after the model's."""
    delay = None
    tail = b""
    for chunk in connection.stream(request):
        tail = tail[-200:] + chunk
        if delay is None and (sent_at := TIMESTAMP.search(tail)):
            delay = (time.time() - float(sent_at[1])) * 1000
    if delay is None or not tail.endswith(b"data: [DONE]\n\n"):
        raise RunFailed(tail)
    return delay


def measure(
    name: str, send: Callable[[Connection], float | None], deployment: Deployment, clients: int, seconds: float
) -> RunMeasurement:
    """Repeat an operation from concurrent clients for some seconds."""
    reference = reference_cpu_ms()
    recorder = Recorder()
    with recorder.repeating(send, deployment.port, clients):
        before, started = cpu_of_parts(deployment), time.perf_counter()
        recorder.recording.set()
        time.sleep(seconds)
        recorder.recording.clear()
        elapsed, after = time.perf_counter() - started, cpu_of_parts(deployment)
    runs = max(1, recorder.finished)
    web_cpu, database_cpu = ((end - begin) / runs * 1000 for begin, end in zip(before, after, strict=True))
    return RunMeasurement(
        name,
        clients,
        recorder.finished / elapsed,
        web_cpu + database_cpu,
        database_cpu,
        percentile(recorder.first_texts, 0.5),
        percentile(recorder.first_texts, 0.95),
        recorder.errors,
        (reference + reference_cpu_ms()) / 2,
    )


def cpu_of_parts(deployment: Deployment) -> tuple[float, float]:
    """Return the CPU seconds that the web server used so far, and those of the database and the cache."""
    web, *storage = deployment.servers
    return cpu_seconds([web]), cpu_seconds(storage)


def percentile(values: Sequence[float], share: float) -> float | None:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))] if ordered else None


def select_least_cpu(rounds: Sequence[RunMeasurement]) -> RunMeasurement:
    """Return the measurement with the least CPU, with the errors of all."""
    best = min(rounds, key=lambda measurement: measurement.cpu)
    best.errors = sum(measurement.errors for measurement in rounds)
    return best


def measure_pieces(encoder: RequestEncoder, deployment: Deployment, pieces: int) -> PieceMeasurement:
    """Measure the CPU of a streamed answer with this many pieces of text."""
    reference = reference_cpu_ms()
    with closing(Connection(deployment.port)) as connection:
        stream(encoder, SHORT_ANSWER)(connection)
        before = cpu_seconds(deployment.servers)
        stream(encoder, pieces)(connection)
        cpu = cpu_seconds(deployment.servers) - before
    return PieceMeasurement(pieces, cpu / pieces * 1000, (reference + reference_cpu_ms()) / 2)
