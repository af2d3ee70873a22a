"""Duration of every page with large data: thousands of agents, 1,000 versions of one, and 211 kB of instructions.

Those of jobs are measured with twenty imports, each with the largest report.

    .venv/bin/python -m benchmarks.pages --agents 3000

Starts a temporary copy (tests/served.py). Measures it over one HTTP connection, and on one page in Chromium.
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
LINE = "Answer every guest in the order of arrival, {{name}}, and name the source of all that you know.\n"
LONG_TEXT = LINE * (211_000 // len(LINE) + 1)
PAGE_TARGET = 150  # ms of the server
PAINT_TARGET = 500
JOB_TARGET = 100
LARGE_JOBS = 20  # each with the largest report
FAULTY_RECORDS = 12_000  # of one import, whose report reaches its largest size
LISTS = {
    "first page": "/",
    "sorted by name": "/?sort=name",
    "search": "/?q=politely",
    "page 150": "/?page=150",
    "filter panel": "/?panel=filters",
    "by tool, tag and model": "/?tool=text-search&tag=even&model=demo/echo",
    "command palette": "/go-to?q=agent%2012",
}

# The agent has 211 kB of instructions and 1,000 versions.
OF_AN_AGENT = {
    "editor": "",
    "fields for adding a sub-agent": "/options/agents?q=agent+2999",
    "history": "/versions",
    "history, last page": "/versions?page=20",
    "version": "/versions/1",
    "publish": "/versions/1/activate",
    "restore": "/versions/1/restore",
    "live history": "/live-history",
    "runs": "/runs",
    "usage": "/usage",
    "quality": "/quality",
    "used by": "/used-by",
    "playground": "/try",
    "delete": "/delete",
}
OTHER_PAGES: tuple[str, ...] = (
    "/new-agent",
    "/runs",
    "/approvals",
    "/threads",
    "/background-tasks",
    "/datasets",
    "/knowledge",
)
OTHER_PAGES += ("/team", "/account/keys", "/account/notices", "/deleted-agents", "/admin/")
OTHER_PAGES += (
    "/admin/agents_app/agent/",
    "/admin/versions_app/agentversion/",
    "/admin/agents_app/agent/long/change/",
)

TAGS = ("even", "odd")

# A task that is queued in an animation frame runs after the paint of that frame.
TYPE_CHARACTER_SCRIPT = """() => new Promise((done) => {
    const started = performance.now();
    document.execCommand("insertText", false, "x");
    requestAnimationFrame(() => setTimeout(() => done(performance.now() - started)));
})"""
FIRST_PAINT_SCRIPT = """() => new Promise((done) => {
    const report = (list) => list.getEntriesByName("first-contentful-paint").forEach((entry) => done(entry.startTime));
    new PerformanceObserver(report).observe({type: "paint", buffered: true});
})"""


class Figure(NamedTuple):
    """A row of the table in milliseconds: durations, the target of their p95, and the CPU of the server."""

    label: str
    target: int
    durations: Sequence[float]
    cpu: float | None = None

    def __str__(self) -> str:
        p95 = statistics.quantiles(self.durations, n=20, method="inclusive")[-1]
        cpu = "" if self.cpu is None else f"{self.cpu:,.0f}"
        return f"| {self.label} | {statistics.median(self.durations):,.0f} | {p95:,.0f} | {self.target:,} | {cpu} |"


def repeat(times: int, measure: Callable[[], float]) -> list[float]:
    measure()  # warm-up
    return [measure() for _ in range(times)]


# --- over HTTP


def request_ms(client: httpx.Client, path: str) -> float:
    started = time.perf_counter()
    client.get(path).raise_for_status()
    return (time.perf_counter() - started) * 1000


def server_cpu_ms(copy: Served) -> float:
    """Return the CPU milliseconds that the processes of the web server have used so far."""
    return sum(sum(process.cpu_times()[:2]) for process in copy.processes_matching("agentcms.server.web")) * 1000


def measure_over_http(copy: Served, client: httpx.Client, times: int, job_id: str) -> list[Figure]:
    pages = {f"list of agents, {name}": (path, PAGE_TARGET) for name, path in LISTS.items()}
    pages |= {
        f"211 kB, 1,000 versions: {name}": (f"/agents/long{path}", PAGE_TARGET) for name, path in OF_AN_AGENT.items()
    }
    pages |= {path: (path, PAGE_TARGET) for path in OTHER_PAGES}
    jobs = ("/exchange", f"/exchange/{job_id}", "/api/jobs", f"/api/jobs/{job_id}", f"/api/jobs/{job_id}/records")
    pages |= {path.replace(job_id, ":id"): (path, JOB_TARGET) for path in jobs}
    pages["editor, 1 kB of instructions"] = ("/agents/short", 60)
    pages["comparison of 200 kB, one line changed"] = ("/agents/long/versions/compare?from=1&to=2", PAGE_TARGET)
    pages["comparison of 200 kB, every line changed"] = ("/agents/long/versions/compare?from=2&to=3", PAGE_TARGET)

    def measure(label: str, path: str, target: int) -> Figure:
        request_ms(client, path)  # warm-up
        before = server_cpu_ms(copy)
        durations = [request_ms(client, path) for _ in range(times)]
        return Figure(f"{label}: response", target, durations, (server_cpu_ms(copy) - before) / times)

    return [measure(label, path, target) for label, (path, target) in pages.items()]


# --- in Chromium


def first_paint_ms(page: Page, url: str) -> float:
    page.goto(url)
    return float(page.evaluate(FIRST_PAINT_SCRIPT))


def measure_in_chromium(page: Page, base_url: str, times: int) -> list[Figure]:
    page.goto(f"{base_url}/agents/long")
    page.get_by_role("textbox", name="Instructions").press("Control+End")
    typing = repeat(100, lambda: float(page.evaluate(TYPE_CHARACTER_SCRIPT)))
    page.on("dialog", lambda dialog: dialog.accept())  # the warning about the unsaved text
    comparison = f"{base_url}/agents/long/versions/compare"
    one_line, every_line = (
        repeat(times, lambda pair=pair: first_paint_ms(page, f"{comparison}?{pair}"))  # type: ignore[misc]
        for pair in ("from=1&to=2", "from=2&to=3")
    )
    return [
        Figure("typing a character into 200 kB: paint", 100, typing),
        Figure("comparison of 200 kB, one line changed: first paint", PAINT_TARGET, one_line),
        Figure("comparison of 200 kB, every line changed: first paint", PAINT_TARGET, every_line),
    ]


def sign_in(page: Page, base_url: str) -> None:
    page.goto(f"{base_url}/sign-in")
    page.fill("[name=username]", "bench")
    page.fill("[name=password]", PASSWORD)
    page.press("[name=password]", "Enter")
    page.wait_for_url(lambda url: "/sign-in" not in url)


# --- sample data

COPY_JOB = """
from jobs_app.models import Job, ReportRow
job = Job.objects.get(pk="{job_id}")
rows = list(job.report_rows.all())
for _ in range({copies}):
    job.pk = Job._meta.pk.get_default()
    job.save(force_insert=True)
    for row in rows:
        row.pk, row.job = None, job
    ReportRow.objects.bulk_create(rows, 500)
"""


def fill(api: httpx.Client, agents: int, versions: int, folder: Path) -> None:
    """Import the agents of the list. Create one agent with a short text and one with many long versions."""
    agent = {"instructions": "Answer politely, and briefly.\n" * 33, "model": {"provider": "demo", "name": "echo"}}
    file = folder / "agents.jsonl"
    with file.open("w") as lines:
        for number in range(agents):
            fields = {"name": f"Agent {number}", "tools": ["text-search"], "metadata": {"tags": [TAGS[number % 2]]}}
            record = {"id": f"agent-{number}", "ownerId": "", "agent": {**agent, **fields}}
            lines.write(f"{json.dumps(record)}\n")
    import_file(api, file)
    api.post("/api/stored/agents", json={"id": "short", "name": "Short", **agent}).raise_for_status()
    api.post("/api/stored/agents", json={"id": "long", "name": "Long", **agent, "instructions": LONG_TEXT})
    for text in (LONG_TEXT.replace("guest", "visitor", 1), LONG_TEXT.replace("know", "state")):
        api.patch("/api/stored/agents/long", json={"instructions": text}).raise_for_status()
    for number in range(versions - 3):
        api.patch("/api/stored/agents/long", json={"description": f"Change {number}"}).raise_for_status()


def import_file(api: httpx.Client, file: Path, dry_run: bool = False) -> str:
    """Import the agents of a file. Return the ID of the finished job."""
    with file.open("rb") as body:
        path = f"/api/stored/agent-import?dryRun={str(dry_run).lower()}"
        job = api.post(path, content=body, headers={"Content-Type": "application/x-ndjson"})
    job_id = str(job.raise_for_status().json()["id"])
    wait_until(lambda: api.get(f"/api/jobs/{job_id}").json()["state"] == "done", 600, "the import")
    return job_id


def create_large_jobs(api: httpx.Client, copy: Served) -> str:
    """Import a file that names missing tools, and copy the job with its report. Return the ID of the import."""
    file = copy.data_dir / "faulty.jsonl"
    tools = [f"missing-{number}-{'x' * 220}" for number in range(3)]
    agent = {"name": "Faulty", "instructions": "", "model": {"provider": "demo", "name": "echo"}, "tools": tools}
    with file.open("w") as lines:
        for number in range(FAULTY_RECORDS):
            lines.write(f"{json.dumps({'id': f'faulty-{number}', 'ownerId': '', 'agent': agent})}\n")
    job_id = import_file(api, file, dry_run=True)
    copy.manage("shell", "-v", "0", "-c", COPY_JOB.format(job_id=job_id, copies=LARGE_JOBS - 1))
    return job_id


def measure_pages(copy: Served, agents: int, versions: int, times: int) -> list[Figure]:
    copy.create_user("bench", "--superuser")
    with copy.client(copy.create_api_key("bench")) as api:
        fill(api, agents, versions, copy.data_dir)
        job_id = create_large_jobs(api, copy)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page = browser.new_page()
        sign_in(page, copy.base_url)
        cookies: dict[str, Any] = {cookie["name"]: cookie["value"] for cookie in page.context.cookies()}
        with httpx.Client(base_url=copy.base_url, cookies=cookies, timeout=60) as client:
            figures = measure_over_http(copy, client, times, job_id)
            figures += measure_in_chromium(page, copy.base_url, max(5, times // 4))
        browser.close()
    return figures


def print_figures(figures: Sequence[Figure], title: str, amount: str, load: float) -> None:
    """Print figures as a table. `title` is that of the first column, and `load` that of before the measurement."""
    print(f"Milliseconds, {amount}. The load was {load:.1f} on {os.cpu_count()} processors.\n")
    print(f"| {title} | median | p95 | target for p95 | server CPU |\n| --- | ---: | ---: | ---: | ---: |")
    for figure in figures:
        print(figure)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--agents", type=int, default=3_000)
    parser.add_argument("--versions", type=int, default=1_000)
    parser.add_argument("--times", type=int, default=40)
    options = parser.parse_args()
    settings = {"API_THROTTLE": "off", "AGENT_VERSION_LIMIT": str(options.versions)}
    load, *_ = os.getloadavg()
    with tempfile.TemporaryDirectory() as folder, serving(Path(folder) / "var", **settings) as copy:
        figures = measure_pages(copy, options.agents, options.versions, options.times)
    print_figures(figures, "page", f"{options.agents:,} agents", load)


if __name__ == "__main__":
    main()
