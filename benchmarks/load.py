"""Throughput, latency and server CPU of the six operations, at 1, 8 and 32 clients, on a copy of its own.

    make benchmark            or  .venv/bin/python -m benchmarks.load --seconds 3 --runs 3

It starts a temporary PostgreSQL and the web server on the loopback, seeds 1,000 agents beneath the application, and
measures for a bounded time. `--sqlite` measures the embedded default instead, `--growth` also 100,000 agents with
1,000,000 versions. CPU is that of the web server's processes and of the database's, from /proc, per answered request.
Tables go to docs/benchmarks/, beside their plots.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import random
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import psutil  # type: ignore[import-untyped]

from agentcms.embedded import valkey
from benchmarks import plots

PROJECT = Path(__file__).resolve().parent.parent
TEXT = "You are a careful assistant of the support team. Answer from the knowledge base and cite the article. " * 11
CLIENTS = (1, 8, 32)
WARM_UP = 0.5
MOST_SECONDS = 20

Request = bytes
Operation = Callable[[], Request]


@dataclass
class Cell:
    """One operation at one number of clients; times in milliseconds."""

    operation: str
    clients: int
    per_second: float
    p50: float
    p95: float
    p99: float
    cpu: float
    errors: int


# --- The client: as little as can be, because it shares the cores with what is measured


class Line:
    """A kept-alive connection that sends prepared bytes and reads whole answers."""

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=30)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def ask(self, request: Request) -> tuple[int, bytes]:
        self.socket.sendall(request)
        data = b""
        while (end := data.find(b"\r\n\r\n")) < 0:
            data += self.receive()
        head = data[:end].lower()
        status = int(head[9:12])
        length = int(head.partition(b"content-length: ")[2].partition(b"\r\n")[0] or 0)
        while len(data) < end + 4 + length:
            data += self.receive()
        return status, data[end + 4 :]

    def receive(self) -> bytes:
        if not (chunk := self.socket.recv(262144)):
            raise ConnectionError("The server closed the connection.")
        return chunk


class Api:
    """Requests of one key, as bytes."""

    def __init__(self, port: int, key: str) -> None:
        self.port = port
        self.head = f"HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAuthorization: Bearer {key}\r\n"

    def get(self, path: str) -> Request:
        return f"GET {path} {self.head}\r\n".encode()

    def patch(self, path: str, body: dict[str, Any]) -> Request:
        text = json.dumps(body)
        kind = f"Content-Type: application/json\r\nContent-Length: {len(text)}\r\n"
        return f"PATCH {path} {self.head}{kind}\r\n{text}".encode()

    def json(self, path: str) -> Any:
        status, body = Line(self.port).ask(self.get(path))
        if status != 200:
            raise RuntimeError(f"{path} answered {status}: {body[:200]!r}")
        return json.loads(body)


def operations(api: Api, agents: int) -> dict[str, Operation]:
    """What is measured, by name."""
    chance, count = random.Random(1), itertools.count()
    path = "/api/stored/agents"
    history = f"{path}/agent-000000/versions"
    newest, *_, oldest = api.json(f"{history}?perPage=50")["versions"]
    compared = f"{history}/compare?from={oldest['id']}&to={newest['id']}"

    def edit(number: int) -> Request:
        return api.patch(f"{path}/agent-{number:06d}", {"instructions": f"{TEXT} edit {next(count)}"})

    pages = max(1, min(agents, 1000) // 100)
    return {
        "read an agent": lambda: api.get(f"{path}/agent-{chance.randrange(agents):06d}"),
        "list 100": lambda: api.get(f"{path}?perPage=100&page={chance.randrange(pages)}"),
        "edit, spread over 200": lambda: edit(100 + chance.randrange(200)),
        "edit one at the cap": lambda: edit(1),
        "list 20 versions": lambda: api.get(f"{history}?perPage=20&page={chance.randrange(2)}"),
        "compare": lambda: api.get(compared),
    }


# --- Measuring


def cpu_of(processes: list[psutil.Process]) -> float:
    """CPU seconds so far of these processes, their children, and the children that ended."""
    total = 0.0
    for process in processes:
        for each in [process, *process.children(recursive=True)]:
            times = each.cpu_times()
            total += times.user + times.system + times.children_user + times.children_system
    return total


def measure(name: str, act: Operation, port: int, clients: int, seconds: float, servers: list[psutil.Process]) -> Cell:
    """Let so many clients repeat an operation for a while."""
    times: list[float] = []
    errors = itertools.count()
    recording, stopping = threading.Event(), threading.Event()

    def run() -> None:
        line = Line(port)
        while not stopping.is_set():
            request = act()
            began = time.perf_counter()
            status, _ = line.ask(request)
            if recording.is_set():
                times.append(time.perf_counter() - began) if status == 200 else next(errors)

    threads = [threading.Thread(target=run) for _ in range(clients)]
    for thread in threads:
        thread.start()
    time.sleep(WARM_UP)
    cpu, began = cpu_of(servers), time.perf_counter()
    recording.set()
    time.sleep(seconds)
    recording.clear()
    took, spent = time.perf_counter() - began, cpu_of(servers) - cpu
    stopping.set()
    for thread in threads:
        thread.join()
    return cell(name, clients, times, took, spent, next(errors))


def cell(name: str, clients: int, times: list[float], took: float, spent: float, errors: int) -> Cell:
    times = sorted(times) or [float("nan")]
    at = {share: times[min(len(times) - 1, int(len(times) * share))] * 1000 for share in (0.5, 0.95, 0.99)}
    return Cell(name, clients, len(times) / took, at[0.5], at[0.95], at[0.99], spent / len(times) * 1000, errors)


def median(cells: list[Cell]) -> Cell:
    """The run in the middle, by CPU."""
    return sorted(cells, key=lambda each: each.cpu)[len(cells) // 2]


# --- The copy that is measured


@contextmanager
def database(sqlite: bool) -> Iterator[dict[str, str]]:
    if sqlite:
        yield {}
        return
    from tests import postgres

    # As a careful operator would run it: what is acknowledged is on the disk.
    postgres.FAST = ("max_connections=200", "shared_buffers=256MB")  # type: ignore[assignment]
    with postgres.postgres() as url:
        yield {"DATABASE_URL": url}


@contextmanager
def served(folder: Path, variables: dict[str, str]) -> Iterator[tuple[int, list[psutil.Process], str]]:
    """The web server of a seeded copy: its port, the processes whose CPU counts, and a key."""
    port = free_port()
    environment = {**os.environ, **variables, "DATA_DIR": str(folder), "PORT": str(port), "DEMO_DATA": "no"}
    environment |= {"WEB_WORKERS": "2", "WEB_THREADS": "16"}
    key = manage(environment, "create_api_key", "bench")
    command = [sys.executable, "-m", "granian", "--interface", "wsgi", "--no-ws", "--port", str(port)]
    command += ["--workers", "2", "--blocking-threads", "16", "--log-level", "error", "agentcms.wsgi:application"]
    process = subprocess.Popen(command, cwd=PROJECT, env=environment)
    try:
        wait_for(port)
        yield port, [psutil.Process(process.pid), *other_servers()], key
    finally:
        process.terminate()
        process.wait(30)


def other_servers() -> list[psutil.Process]:
    """The database's and the cache's, which count as well."""
    mine = psutil.Process().children(recursive=True)
    return [each for each in mine if "-D" in each.cmdline() or each.name().startswith("valkey")]


def manage(environment: dict[str, str], *arguments: str) -> str:
    command = [sys.executable, "manage.py", *arguments]
    done = subprocess.run(command, cwd=PROJECT, env=environment, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def wait_for(port: int) -> None:
    deadline = time.monotonic() + 60
    while True:
        try:
            status, _ = Line(port).ask(f"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n".encode())
            if status == 200:
                return
        except OSError:
            pass
        if time.monotonic() > deadline:
            raise RuntimeError("The web server did not start.")
        time.sleep(0.1)


def seed(folder: Path, variables: dict[str, str], agents: int, versions: int) -> None:
    """Beneath the application, because through it a million versions take hours."""
    environment = {**os.environ, **variables, "DATA_DIR": str(folder), "AGENTCMS_PASSWORD": "benchmark-password-1"}
    manage(environment, "migrate", "-v", "0")
    manage(environment, "create_user", "bench", "--superuser")
    manage(environment, "shell", "-v", "0", "-c", f"from benchmarks.prune import fill; fill({agents}, {versions})")
    analyse = "from django.db import connection; connection.cursor().execute('ANALYZE')"
    manage(environment, "shell", "-v", "0", "-c", analyse)


def measured(sqlite: bool, agents: int, versions: int, options: argparse.Namespace) -> list[Cell]:
    cells: list[Cell] = []
    with tempfile.TemporaryDirectory(prefix="agentcms-load-") as name, database(sqlite) as variables:
        folder = Path(name)
        (folder / "static").mkdir()
        seed(folder, variables, agents, versions)
        with valkey(folder / "valkey", os.environ) as cache, served(folder, variables | {"REDIS_URL": cache}) as copy:
            port, servers, key = copy
            fill_history(Api(port, key))
            for operation, act in operations(Api(port, key), agents).items():
                for clients in options.clients:
                    runs = [
                        measure(operation, act, port, clients, options.seconds, servers) for _ in range(options.runs)
                    ]
                    cells.append(median(runs))
                    print(row(cells[-1]), flush=True)
    return cells


def fill_history(api: Api) -> None:
    """Bring two agents to the cap, through the application, so that their versions differ."""
    line = Line(api.port)
    for agent, number in itertools.product(("agent-000000", "agent-000001"), range(50)):
        line.ask(api.patch(f"/api/stored/agents/{agent}", {"instructions": f"{TEXT} filled {number}"}))


# --- Telling

HEAD = """| operation | clients | requests/s | p50 ms | p95 ms | p99 ms | CPU ms/request | errors |
| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |"""


def row(cell: Cell) -> str:
    figures = f"{cell.per_second:.0f} | {cell.p50:.2f} | {cell.p95:.2f} | {cell.p99:.2f} | {cell.cpu:.2f}"
    return f"| {cell.operation} | {cell.clients} | {figures} | {cell.errors} |"


def write(name: str, title: str, cells: list[Cell], options: argparse.Namespace) -> None:
    """A table, its plots and the figures themselves."""
    folder: Path = options.out
    folder.mkdir(parents=True, exist_ok=True)
    facts = f"{os.cpu_count()} cores, {options.runs} runs of {options.seconds:g} s each, the median by CPU is shown."
    lines = [f"# {title}", "", facts, "", HEAD, *map(row, cells), ""]
    for unit, words in (("cpu", "CPU per request, ms"), ("p95", "p95, ms"), ("per_second", "Requests per second")):
        plot = f"{name}-{unit.replace('_', '-')}.svg"
        (folder / plot).write_text(plots.bars(words, [asdict(each) for each in cells], unit))
        lines += [f"![{words}]({plot})", ""]
    (folder / f"{name}.md").write_text("\n".join(lines))
    (folder / f"{name}.json").write_text(json.dumps([asdict(each) for each in cells], indent=1) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--clients", type=int, nargs="+", default=CLIENTS)
    parser.add_argument("--agents", type=int, default=1000)
    parser.add_argument("--sqlite", action="store_true", help="the embedded default instead of PostgreSQL")
    parser.add_argument("--growth", action="store_true", help="also 100,000 agents with ten versions each")
    parser.add_argument("--out", type=Path, default=PROJECT / "docs" / "benchmarks")
    options = parser.parse_args()
    options.seconds = min(options.seconds, MOST_SECONDS)
    where = "sqlite" if options.sqlite else "postgresql"
    print(HEAD)
    cells = measured(options.sqlite, options.agents, 2, options)
    write(where, f"Load on {where}, {options.agents:,} agents", cells, options)
    if options.growth:
        grown = measured(options.sqlite, 100_000, 10, options)
        write(f"{where}-grown", f"Load on {where}, 100,000 agents and 1,000,000 versions", grown, options)
    print(f"\nTables and plots are in {options.out}.")


if __name__ == "__main__":
    main()
