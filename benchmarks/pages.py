"""How quick the pages are: typing into 200 kB of instructions, comparing them, the editor, a list of 10,000 agents.

    .venv/bin/python -m benchmarks.pages --agents 10000

Starts a copy of its own (tests/served.py) and measures it over HTTP and in Chromium, on one connection and one page.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from shutil import which
from typing import Any, NamedTuple

import httpx
from playwright.sync_api import Page, sync_playwright

from tests.served import PASSWORD, Served, serving, wait_until

CHROMIUM = which("chromium") or which("google-chrome")
LINE = "Answer every guest in the order of arrival, {{name}}, and say where what you know comes from.\n"
LONG = LINE * (200_000 // len(LINE) + 1)
LISTS = {"the first page": "/", "by name": "/?sort=name", "found by a word": "/?q=politely", "page 150": "/?page=150"}

# From the key until the browser has painted what it wrote: a task that is queued in a frame runs after its paint.
TYPE_ONE = """() => new Promise((done) => {
    const began = performance.now();
    document.execCommand("insertText", false, "x");
    requestAnimationFrame(() => setTimeout(() => done(performance.now() - began)));
})"""
PAINTED = """() => new Promise((done) => {
    const told = (list) => list.getEntriesByName("first-contentful-paint").forEach((each) => done(each.startTime));
    new PerformanceObserver(told).observe({type: "paint", buffered: true});
})"""


class Figure(NamedTuple):
    """A row of the table, in milliseconds: what 95 of 100 should stay below, what it took, and the server's CPU."""

    what: str
    goal: int
    took: Sequence[float]
    cpu: float | None = None

    def __str__(self) -> str:
        p95 = statistics.quantiles(self.took, n=20, method="inclusive")[-1]
        cpu = "" if self.cpu is None else f"{self.cpu:,.0f}"
        return f"| {self.what} | {statistics.median(self.took):,.0f} | {p95:,.0f} | {self.goal:,} | {cpu} |"


def repeated(times: int, measure: Callable[[], float]) -> list[float]:
    measure()  # warm
    return [measure() for _ in range(times)]


# --- over HTTP


def answered(client: httpx.Client, path: str) -> float:
    began = time.perf_counter()
    client.get(path).raise_for_status()
    return (time.perf_counter() - began) * 1000


def busy(copy: Served) -> float:
    """The CPU that the web server's processes have used so far, in milliseconds; other programs do not change it."""
    return sum(sum(each.cpu_times()[:2]) for each in copy.processes_matching("granian")) * 1000


def over_http(copy: Served, client: httpx.Client, times: int) -> list[Figure]:
    pages = {f"list of agents, {name}": (path, 300) for name, path in LISTS.items()}
    pages["editor, 1 kB of instructions"] = ("/agents/short", 60)
    pages["editor, 200 kB of instructions"] = ("/agents/long", 60)
    pages["comparison of 200 kB, one line changed"] = ("/agents/long/versions/compare?from=1&to=2", 500)
    pages["comparison of 200 kB, every line changed"] = ("/agents/long/versions/compare?from=2&to=3", 2000)

    def measured(what: str, path: str, goal: int) -> Figure:
        answered(client, path)
        before = busy(copy)
        took = [answered(client, path) for _ in range(times)]
        return Figure(f"{what}: answer", goal, took, (busy(copy) - before) / times)

    return [measured(what, path, goal) for what, (path, goal) in pages.items()]


# --- in Chromium


def painted(page: Page, address: str) -> float:
    page.goto(address)
    return float(page.evaluate(PAINTED))


def in_chromium(page: Page, address: str, times: int) -> list[Figure]:
    page.goto(f"{address}/agents/long")
    page.get_by_role("textbox", name="Instructions").press("Control+End")
    typing = repeated(100, lambda: float(page.evaluate(TYPE_ONE)))
    page.on("dialog", lambda dialog: dialog.accept())  # what was typed is left behind
    compared = f"{address}/agents/long/versions/compare"
    one, every = (
        repeated(times, lambda pair=pair: painted(page, f"{compared}?{pair}"))  # type: ignore[misc]
        for pair in ("from=1&to=2", "from=2&to=3")
    )
    return [
        Figure("a key typed into 200 kB: painted", 100, typing),
        Figure("comparison of 200 kB, one line changed: first paint", 1000, one),
        Figure("comparison of 200 kB, every line changed: first paint", 5000, every),
    ]


def sign_in(page: Page, address: str) -> None:
    page.goto(f"{address}/sign-in")
    page.fill("[name=username]", "bench")
    page.fill("[name=password]", PASSWORD)
    page.press("[name=password]", "Enter")
    page.wait_for_url(lambda url: "/sign-in" not in url)


# --- what is measured on


def fill(api: httpx.Client, agents: int, folder: Path) -> None:
    """Thousands of agents by import, as they would come; one with a short text, and one with three long versions."""
    agent = {"instructions": "Answer politely, and briefly.\n" * 33, "model": {"provider": "demo", "name": "echo"}}
    file = folder / "agents.jsonl"
    with file.open("w") as lines:
        for number in range(agents):
            record = {"id": f"agent-{number}", "ownerId": "", "agent": {**agent, "name": f"Agent {number}"}}
            lines.write(f"{json.dumps(record)}\n")
    with file.open("rb") as sent:
        job = api.post("/api/stored/agent-import", content=sent, headers={"Content-Type": "application/x-ndjson"})
    job.raise_for_status()
    wait_until(lambda: api.get(f"/api/jobs/{job.json()['id']}").json()["state"] == "done", 600, "the import")
    api.post("/api/stored/agents", json={"id": "short", "name": "Short", **agent}).raise_for_status()
    api.post("/api/stored/agents", json={"id": "long", "name": "Long", **agent, "instructions": LONG})
    for text in (LONG.replace("guest", "visitor", 1), LONG.replace("know", "say")):
        api.patch("/api/stored/agents/long", json={"instructions": text}).raise_for_status()


def figures(copy: Served, agents: int, times: int) -> list[Figure]:
    copy.create_user("bench", "--superuser")
    with copy.client(copy.create_api_key("bench")) as api:
        fill(api, agents, copy.data_dir)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page = browser.new_page()
        sign_in(page, copy.base_url)
        cookies: dict[str, Any] = {each["name"]: each["value"] for each in page.context.cookies()}
        with httpx.Client(base_url=copy.base_url, cookies=cookies, timeout=60) as client:
            measured = over_http(copy, client, times) + in_chromium(page, copy.base_url, max(5, times // 4))
        browser.close()
    return measured


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--agents", type=int, default=10_000)
    parser.add_argument("--times", type=int, default=40)
    options = parser.parse_args()
    load, *_ = os.getloadavg()
    with tempfile.TemporaryDirectory() as folder, serving(Path(folder) / "var", API_THROTTLE="off") as copy:
        measured = figures(copy, options.agents, options.times)
    print(
        f"Milliseconds, {options.agents:,} agents; the machine's load was {load:.1f} on {os.cpu_count()} processors.\n"
    )
    print("| what | median | p95 | goal of p95 | server's CPU |\n| --- | ---: | ---: | ---: | ---: |")
    for figure in measured:
        print(figure)


if __name__ == "__main__":
    main()
