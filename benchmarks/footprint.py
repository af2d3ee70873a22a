"""What the embedded stack takes on one machine: its start, its memory at rest, and a page of the editor."""

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

from benchmarks.copies import wait_for
from benchmarks.load import cpu_of
from tests.served import PASSWORD, Served

AGENTS, VERSIONS, WARM_UP, PAGES = 1000, 10, 20, 60
REST = 5.0  # seconds


def measured() -> dict[str, float]:
    """Seconds of a start on existing data, megabytes at rest, milliseconds of a page."""
    os.environ.pop(
        "PYTHONDONTWRITEBYTECODE", None
    )  # as on any machine, the second start finds what the first compiled
    with tempfile.TemporaryDirectory(prefix="agentcms-footprint-") as folder:
        copy = Served(Path(folder) / "var")
        try:
            copy.start()
            copy.create_user("ann", "--superuser")
            copy.manage("shell", "-v", "0", "-c", f"from benchmarks.filling import fill; fill({AGENTS}, {VERSIONS})")
            copy.stop()
            return {"first answer, s": seconds_to_first_answer(copy), **memory(copy), **editor_page(copy)}
        finally:
            copy.stop()


def seconds_to_first_answer(copy: Served) -> float:
    began = time.perf_counter()
    copy.launch()
    wait_for(copy.port, "/sign-in")
    return time.perf_counter() - began


def memory(copy: Served) -> dict[str, float]:
    """Of all processes, what several share counted once; the sum that `ps` shows counts it in each."""
    time.sleep(REST)
    everybody = [process.memory_full_info() for process in copy.processes()]
    mega = 1024 * 1024
    return {
        "memory at rest, MB": sum(each.pss for each in everybody) / mega,
        "memory as ps adds it up, MB": sum(each.rss for each in everybody) / mega,
        "processes": len(everybody),
    }


def editor_page(copy: Served) -> dict[str, float]:
    """CPU of the servers and time to answer, of the editor of an agent with a history."""
    servers = [psutil.Process(copy.processes()[0].pid)]
    with closing(signed_in(copy)) as client:
        for number in range(WARM_UP):
            seconds_of(client, number)
        cpu = cpu_of(servers)
        times = [seconds_of(client, WARM_UP + number) for number in range(PAGES)]
        spent = (cpu_of(servers) - cpu) / PAGES
    return {"editor page, CPU ms": spent * 1000, "editor page, ms": statistics.median(times) * 1000}


def seconds_of(client: httpx.Client, number: int) -> float:
    began = time.perf_counter()
    assert client.get(f"/agents/agent-{number:06d}").status_code == 200
    return time.perf_counter() - began


def signed_in(copy: Served) -> httpx.Client:
    client = httpx.Client(base_url=copy.base_url, timeout=30, follow_redirects=True)
    page = client.get("/sign-in")
    fields: dict[str, Any] = {
        "username": "ann",
        "password": PASSWORD,
        "csrfmiddlewaretoken": page.cookies["csrftoken"],
    }
    assert client.post("/sign-in", data=fields, headers={"Referer": copy.base_url}).url.path == "/"
    return client
