"""Start time, idle memory and one page of the embedded stack on one machine."""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import psutil  # type: ignore[import-untyped]

from benchmarks.deployment import wait_until_serving
from benchmarks.load import cpu_seconds
from tests.served import PASSWORD, Served

AGENTS, VERSIONS, WARM_UP_REQUESTS, REQUESTS = 1000, 10, 20, 60
IDLE_SECONDS = 5.0


def measure_footprint() -> dict[str, float]:
    """Return the seconds of a start on existing data, the idle memory in MB, and the milliseconds of a page."""
    # The second start must find the bytecode that the first one compiled, as on a normal machine.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    with tempfile.TemporaryDirectory(prefix="agentcms-footprint-") as folder:
        copy = Served(Path(folder) / "var")
        try:
            copy.start()
            copy.create_user("ann", "--superuser")
            code = f"from benchmarks.sample_data import fill; fill({AGENTS}, {VERSIONS})"
            copy.manage("shell", "-v", "0", "-c", code)
            copy.stop()
            start = {"start, s": start_seconds(copy)}
            return {
                **start,
                **idle_memory(copy),
                **editor_page(copy),
                "restart after a kill, s": restart_seconds(copy),
            }
        finally:
            copy.stop()


def start_seconds(copy: Served) -> float:
    """Start a copy. Return the seconds until its first response."""
    started = time.perf_counter()
    copy.launch()
    wait_until_serving(copy.port, "/sign-in")
    return time.perf_counter() - started


def restart_seconds(copy: Served) -> float:
    """Kill all web processes with SIGKILL. Return the seconds until something responds again."""
    for process in copy.processes_matching("agentcms.server.web"):
        process.kill()
    started = time.perf_counter()
    wait_until_serving(copy.port, "/sign-in")
    return time.perf_counter() - started


def idle_memory(copy: Served) -> dict[str, float]:
    """Return the memory of all processes: with shared pages counted once (PSS), and in each process (RSS)."""
    time.sleep(IDLE_SECONDS)
    processes = [process.memory_full_info() for process in copy.processes()]
    megabyte = 1024 * 1024
    return {
        "idle memory (PSS), MB": sum(memory.pss for memory in processes) / megabyte,
        "idle memory (sum of RSS), MB": sum(memory.rss for memory in processes) / megabyte,
        "processes": len(processes),
    }


def editor_page(copy: Served) -> dict[str, float]:
    """Return the CPU time and the duration of the editor page of an agent with a history."""
    servers = [psutil.Process(copy.processes()[0].pid)]
    with closing(signed_in_client(copy)) as client:
        for number in range(WARM_UP_REQUESTS):
            request_seconds(client, number)
        cpu = cpu_seconds(servers)
        durations = [request_seconds(client, WARM_UP_REQUESTS + number) for number in range(REQUESTS)]
        cpu = (cpu_seconds(servers) - cpu) / REQUESTS
    return {"editor page, CPU ms": cpu * 1000, "editor page, median ms": statistics.median(durations) * 1000}


def request_seconds(client: httpx.Client, number: int) -> float:
    started = time.perf_counter()
    assert client.get(f"/agents/agent-{number:06d}").status_code == 200
    return time.perf_counter() - started


def signed_in_client(copy: Served) -> httpx.Client:
    client = httpx.Client(base_url=copy.base_url, timeout=30, follow_redirects=True)
    page = client.get("/sign-in")
    fields: dict[str, Any] = {
        "username": "ann",
        "password": PASSWORD,
        "csrfmiddlewaretoken": page.cookies["csrftoken"],
    }
    assert client.post("/sign-in", data=fields, headers={"Referer": copy.base_url}).url.path == "/"
    return client
