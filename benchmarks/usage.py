"""Duration of the page with the use of an agent that ran a million times in 90 days.

    .venv/bin/python -m benchmarks.usage --runs 1000000

Starts a temporary copy (tests/served.py), copies one run in its database, and rolls the past days up as the nightly
clean-up does. The runs of today are not rolled up, so that the page counts them. `tests.postgres` gives the copy a
PostgreSQL: `.venv/bin/python -m tests.postgres -- .venv/bin/python -m benchmarks.usage`.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import httpx

from agentcms.server.processes import PROJECT
from benchmarks.pages import Figure, print_figures, request_ms
from tests.served import PASSWORD, Served, serving

RANGES = (7, 30, 90)  # days
TARGET = 200  # ms

COPY_SCRIPT = "from benchmarks.copied_runs import copy_run; copy_run({count})"
ROLL_UP_SCRIPT = "from runs_app.usage.daily_rollup import roll_up_days; list(roll_up_days())"


def run_in_copy(copy: Served, code: str) -> float:
    """Run Python code in the application of a copy. Return the seconds."""
    started = time.perf_counter()
    command = [sys.executable, "manage.py", "shell", "--no-imports", "-c", code]
    subprocess.run(command, env=copy.environment, cwd=PROJECT, check=True)
    return time.perf_counter() - started


def signed_in_client(copy: Served) -> httpx.Client:
    client = httpx.Client(base_url=copy.base_url, timeout=120, follow_redirects=True)
    form = client.get("/sign-in").text
    token = re.search(r'name="csrfmiddlewaretoken" value="([^"]+)"', form)
    assert token is not None
    sent = {"username": "bench", "password": PASSWORD, "csrfmiddlewaretoken": token[1]}
    client.post("/sign-in", data=sent).raise_for_status()
    return client


def create_first_run(copy: Served) -> None:
    copy.create_user("bench", "--superuser")
    agent = {"id": "busy", "name": "Busy", "instructions": "Be brief.", "model": {"provider": "demo", "name": "echo"}}
    with copy.client(copy.create_api_key("bench")) as api:
        api.post("/api/stored/agents", json=agent).raise_for_status()
        api.post("/api/agents/busy/generate", json={"messages": "Hello"}).raise_for_status()


def measure(copy: Served, runs: int, times: int) -> list[Figure]:
    create_first_run(copy)
    print(f"Inserted {runs:,} runs in {run_in_copy(copy, COPY_SCRIPT.format(count=runs)):,.0f} s.")
    print(f"Rolled them up in {run_in_copy(copy, ROLL_UP_SCRIPT):,.0f} s.")
    figures = []
    with contextlib.closing(signed_in_client(copy)) as client:
        for days in RANGES:
            path = f"/agents/busy/usage?days={days}"
            request_ms(client, path)  # warm-up
            figures.append(Figure(f"{days} days", TARGET, [request_ms(client, path) for _ in range(times)]))
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=1_000_000)
    parser.add_argument("--times", type=int, default=20)
    options = parser.parse_args()
    load, *_ = os.getloadavg()
    settings = {"API_THROTTLE": "off", "RUN_DAYS": "365"}
    with tempfile.TemporaryDirectory() as folder, serving(Path(folder) / "var", **settings) as copy:
        figures = measure(copy, options.runs, options.times)
    print_figures(figures, "use of an agent", f"{options.runs:,} runs", load)


if __name__ == "__main__":
    main()
