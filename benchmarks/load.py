"""Throughput, latency and server CPU of the six operations, at so many clients, on a copy of its own.

CPU is that of the web server's processes, the database's and the cache's, from /proc, per answered request.
"""

from __future__ import annotations

import itertools
import random
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import psutil  # type: ignore[import-untyped]

from benchmarks import TEXT
from benchmarks.client import Api, Line, Request
from benchmarks.copies import Copy
from benchmarks.pace import pace

WARM_UP = 0.4

Operation = Callable[[], Request]


@dataclass
class Cell:
    """One operation at one number of clients; times in milliseconds.

    `pace` is that of the idle machine around it, `middle_cpu` that of the run in the middle where there were several.
    """

    operation: str
    clients: int
    per_second: float
    p50: float
    p95: float
    p99: float
    cpu: float
    errors: int
    pace: float = 0.0
    middle_cpu: float = 0.0


def measured(copy: Copy, agents: int, clients: Sequence[int], runs: int, seconds: float) -> list[Cell]:
    """Every operation at every number of clients; of several runs the one that took the least CPU.

    Whoever else uses the hardware only adds to it, for seconds or for minutes: so all are measured in turn, in rounds.
    Edits come after all reading, because what was edited has to be told anew.
    """
    api = Api(copy.port, copy.key)
    fill_history(api)
    measurements = list(itertools.product(operations(api, agents).items(), clients))
    cells: dict[tuple[str, int], Cell] = {}
    for are_edits in (False, True):
        group = [each for each in measurements if each[0][0].startswith("edit") == are_edits]
        rounds = [[paced(name, act, copy, count, seconds) for (name, act), count in group] for _ in range(runs)]
        cells |= {(each.operation, each.clients): each for each in map(least, zip(*rounds, strict=True))}
    found = [cells[name, count] for (name, _), count in measurements]
    print("\n".join(map(row, found)), flush=True)
    return found


def paced(name: str, act: Operation, copy: Copy, clients: int, seconds: float) -> Cell:
    """What `measure` finds, with the pace around it."""
    before = pace()
    found = measure(name, act, copy, clients, seconds)
    found.pace = (before + pace()) / 2
    return found


def least(tried: Sequence[Cell]) -> Cell:
    """The run that took the least CPU, with that of the run in the middle, and the errors of all."""
    cheapest, *_ = ordered = sorted(tried, key=lambda each: each.cpu)
    cheapest.middle_cpu = ordered[len(ordered) // 2].cpu
    cheapest.errors = sum(each.errors for each in tried)
    return cheapest


HEAD = """| operation | clients | requests/s | p50 ms | p95 ms | p99 ms | CPU ms | in the middle | errors | pace ms |
| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |"""


def row(cell: Cell) -> str:
    figures = f"{cell.per_second:.0f} | {cell.p50:.2f} | {cell.p95:.2f} | {cell.p99:.2f} | {cell.cpu:.2f}"
    figures += f" | {cell.middle_cpu:.2f}"
    return f"| {cell.operation} | {cell.clients} | {figures} | {cell.errors} | {cell.pace:.0f} |"


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


def fill_history(api: Api) -> None:
    """Bring two agents to the cap, through the application, so that their versions differ."""
    line = Line(api.port)
    for agent, number in itertools.product(("agent-000000", "agent-000001"), range(50)):
        line.ask(api.patch(f"/api/stored/agents/{agent}", {"instructions": f"{TEXT} filled {number}"}))
    line.close()


def cpu_of(processes: list[psutil.Process]) -> float:
    """CPU seconds so far of these processes, their children, and the children that ended."""
    total = 0.0
    for process in processes:
        for each in [process, *process.children(recursive=True)]:
            times = each.cpu_times()
            total += times.user + times.system + times.children_user + times.children_system
    return total


def measure(name: str, act: Operation, copy: Copy, clients: int, seconds: float) -> Cell:
    """Let so many clients repeat an operation for a while."""
    times: list[float] = []
    errors = itertools.count()
    recording, stopping = threading.Event(), threading.Event()

    def run() -> None:
        line = Line(copy.port)
        while not stopping.is_set():
            request = act()
            began = time.perf_counter()
            status, _ = line.ask(request)
            if recording.is_set():
                times.append(time.perf_counter() - began) if status == 200 else next(errors)
        line.close()

    threads = [threading.Thread(target=run) for _ in range(clients)]
    for thread in threads:
        thread.start()
    time.sleep(WARM_UP)
    cpu, began = cpu_of(copy.servers), time.perf_counter()
    recording.set()
    time.sleep(seconds)
    recording.clear()
    took, spent = time.perf_counter() - began, cpu_of(copy.servers) - cpu
    stopping.set()
    for thread in threads:
        thread.join()
    return cell(name, clients, times, took, spent, next(errors))


def cell(name: str, clients: int, times: list[float], took: float, spent: float, errors: int) -> Cell:
    times = sorted(times) or [float("nan")]
    at = {share: times[min(len(times) - 1, int(len(times) * share))] * 1000 for share in (0.5, 0.95, 0.99)}
    return Cell(name, clients, len(times) / took, at[0.5], at[0.95], at[0.99], spent / len(times) * 1000, errors)
