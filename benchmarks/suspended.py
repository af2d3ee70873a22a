"""The cost of runs that wait for people: their rows, what an idle process does, the inbox, expiry and resumption.

    python -m benchmarks.suspended [--runs 10000] [--json]

Suspends one run and copies it, on a temporary SQLite or on DATABASE_URL. Measures one process without the web server.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple
from uuid import UUID

import psutil  # type: ignore[import-untyped]

from benchmarks.durable import prepare
from benchmarks.suspended_rows import (
    AGENT,
    collect_static_files,
    create_agent,
    create_users,
    fill_database,
    stored_bytes,
    suspend_first_run,
    vacuum,
)

if TYPE_CHECKING:
    from runs_app.models import AgentRun

ROUNDS = 400  # of the reaper
REQUESTS = 20  # of each page
DECISIONS = 100
EXPIRED = 500
PAGES = ("/approvals", "/approvals/count", "/api/approvals", f"/api/agents/{AGENT}/suspended-runs")
PAGES_OF_STRANGER = PAGES[:3]


class Timing(NamedTuple):
    """Milliseconds and CPU milliseconds of a call, the least of several, and the number of its queries.

    Other programs on the machine can only add to them.
    """

    wall: float
    cpu: float
    queries: int


def time_calls(call: Callable[[], Any], times: int) -> Timing:
    """Call a function so often, and once more to count its queries."""
    from django.db import connection
    from django.test.utils import CaptureQueriesContext

    call()
    walls, cpus = [], []
    for _ in range(times):
        wall, cpu = time.perf_counter(), time.process_time()
        call()
        walls.append(1000 * (time.perf_counter() - wall))
        cpus.append(1000 * (time.process_time() - cpu))
    with CaptureQueriesContext(connection) as queries:
        call()
    return Timing(min(walls), min(cpus), len(queries))


def measure_round() -> Timing:
    """Return what a round of the reaper costs, which every process does each second."""
    from runs_app.engine import reaper

    return time_calls(reaper.reap_once, ROUNDS)


def measure_pages(username: str, paths: Sequence[str]) -> dict[str, Timing]:
    """Return what the lists of waiting calls cost for a user."""
    from django.contrib.auth import get_user_model
    from django.test import Client

    from access_app.models import ApiKey

    user = get_user_model().objects.get(username=username)
    browser, api = Client(SERVER_NAME="127.0.0.1"), Client(SERVER_NAME="127.0.0.1")
    browser.force_login(user)
    headers = {"Authorization": f"Bearer {ApiKey.objects.issue(user, name='bench')[1]}"}

    def request(path: str) -> None:
        answer = api.get(path, headers=headers) if path.startswith("/api") else browser.get(path)
        assert answer.status_code in (200, 204), (path, answer.status_code, answer.content[:500])

    return {path: time_calls(lambda path=path: request(path), REQUESTS) for path in paths}  # type: ignore[misc]


def measure_resumption(count: int) -> tuple[list[float], list[float]]:
    """Approve calls one after the other. Return the milliseconds to the first further event, and to the end."""
    from django.contrib.auth import get_user_model
    from django.utils import timezone

    from runs_app.approvals.decisions import Decision, Verdict, decide_pending_call
    from runs_app.events.streams import wait_until_over
    from runs_app.models import AgentRun, PendingCall

    user = get_user_model().objects.get(username="publisher")
    calls = PendingCall.objects.waiting()[:count]
    first, last = [], []
    for call in [*calls]:
        assert call.run is not None
        number = call.run.last_event_number
        decided_at = timezone.now()
        decide_pending_call(call, Decision(Verdict.APPROVE), user, PendingCall.Via.API)
        wait_until_over(call.run.pk)
        run = AgentRun.objects.get(pk=call.run.pk)
        assert run.finished_at is not None, run.error
        event = run.events.filter(number__gt=number).order_by("number")[0]
        first.append(1000 * (event.created_at - decided_at).total_seconds())
        last.append(1000 * (run.finished_at - decided_at).total_seconds())
    return first, last


def measure_expiry(count: int) -> float:
    """Let so many calls expire, and return how many a second the reaper of one process declines."""
    from datetime import timedelta

    from django.utils import timezone

    from runs_app.approvals.expiry import expire_calls
    from runs_app.models import AgentRun, PendingCall

    calls = PendingCall.objects.waiting().filter(run__isnull=False)
    ids = [UUID(str(run_id)) for run_id in calls.values_list("run_id", flat=True)[:count]]
    past = timezone.now() - timedelta(minutes=1)
    PendingCall.objects.filter(run__in=ids).update(expires_at=past)
    AgentRun.objects.filter(pk__in=ids).update(expires_at=past)
    started = time.perf_counter()
    expired = sum(iter(expire_calls, 0))
    seconds = time.perf_counter() - started
    assert expired == count
    wait_for_ends(ids)
    return count / seconds


def wait_for_ends(run_ids: list[UUID]) -> None:
    """Look after these runs as the reaper does until they are over."""
    from runs_app.engine import reaper
    from runs_app.models import AgentRun

    while AgentRun.objects.filter(pk__in=run_ids, finished_at=None).exists():
        reaper.reap_once()
        time.sleep(0.2)


def p95(values: list[float]) -> float:
    return statistics.quantiles(values, n=20, method="inclusive")[-1]


def measure(count: int) -> dict[str, float]:
    """Return all figures, those of the reaper with one waiting run too."""
    template = suspend_first_run()
    vacuum()
    few, size, memory = measure_round(), stored_bytes(), resident_bytes()
    command = [sys.executable, "-m", "benchmarks.suspended", "--fill", str(count - 1)]
    subprocess.run(command, check=True)
    many = measure_round()
    gc.collect()
    figures = measure_size(template, size, count) | {
        "round of the reaper, one run waits, ms": few.wall,
        f"round of the reaper, {count:,} wait (goal 5, prototype 4.3), ms": many.wall,
        "of it CPU of this process, ms": many.cpu,
        "queries of a round": many.queries,
        f"memory of this process, {count:,} more wait, MB": (resident_bytes() - memory) / 1e6,
    }
    return figures | measure_lists() | measure_decisions(count)


def resident_bytes() -> int:
    return int(psutil.Process().memory_info().rss)


def measure_size(template: AgentRun, size_before: int, count: int) -> dict[str, float]:
    """Return the kilobytes of a waiting run with the steps of its journal and without them. Delete the steps."""
    from runs_app.models import RunStep

    events, steps = template.events.count(), template.steps.count()
    with_steps = stored_bytes() - size_before
    RunStep.objects.all().delete()
    vacuum()
    without_steps = stored_bytes() - size_before
    return {
        f"kB of a waiting run with {events} events (goal 6, prototype 5.3)": without_steps / count / 1000,
        f"kB of {steps} finished step": (with_steps - without_steps) / count / 1000,
    }


def measure_lists() -> dict[str, float]:
    figures: dict[str, float] = {}
    readers = (("publisher", "who may decide all", PAGES), ("stranger", "of another team", PAGES_OF_STRANGER))
    for username, label, paths in readers:
        for path, timing in measure_pages(username, paths).items():
            figures[f"{path}, {label}, ms"] = timing.wall
            figures[f"{path}, {label}, CPU of this process, ms"] = timing.cpu
            figures[f"{path}, {label}, queries"] = timing.queries
    return figures


def measure_decisions(count: int) -> dict[str, float]:
    first, last = measure_resumption(min(DECISIONS, count // 4))
    expired = min(EXPIRED, count // 2)
    return {
        "decision to first event, median, ms": statistics.median(first),
        "decision to first event, p95 (goal 500), ms": p95(first),
        "decision to end of the run, p95, ms": p95(last),
        f"expired calls per second of one process, which continues the runs, {expired} at once": (
            measure_expiry(expired)
        ),
        "load of the machine by all programs": os.getloadavg()[0],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=10_000)
    parser.add_argument("--json", action="store_true", help="print the figures as one line of JSON")
    parser.add_argument("--fill", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.fill is not None:
        fill_database(options.fill)
        return
    os.environ |= {"API_THROTTLE": "off", "RUNS_SUSPENDED_PER_USER": "100000"}
    folder = prepare()
    collect_static_files()
    try:
        create_agent()
        create_users()
        figures = measure(options.runs)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    if options.json:
        print(json.dumps(figures))
        return
    for name, value in figures.items():
        print(f"{name}: {value:.2f}")


if __name__ == "__main__":
    main()
