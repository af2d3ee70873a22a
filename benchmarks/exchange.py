"""How long a large import and export take, and how much memory the process that does them needs at most.

    .venv/bin/python -m benchmarks.exchange --agents 10000
    .venv/bin/python -m tests.postgres -- .venv/bin/python -m benchmarks.exchange

Runs on the database of DATABASE_URL, which it fills, or on SQLite in a temporary data folder. Each job is done by a
process of its own, so that its peak is its own.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "agentcms.settings")
os.environ.setdefault("DATA_DIR", tempfile.mkdtemp(prefix="agentcms-benchmark-"))

import django

django.setup()

from django.contrib.auth import get_user_model  # noqa: E402
from django.core.management import call_command  # noqa: E402
from django.db import connection  # noqa: E402

from agentcms.server.processes import PROJECT  # noqa: E402
from jobs_app import runner  # noqa: E402
from jobs_app.models import Job  # noqa: E402
from versions_app.exchange.jobs import EXPORT, IMPORT, exchange_folder  # noqa: E402

WORDS = (
    "answer",
    "the",
    "guest",
    "politely",
    "and",
    "briefly",
    "in",
    "the language of",
    "question",
    "Grüße",
    "日本語",
    "👋",
)


def write_file(path: Path, agents: int, size: int) -> int:
    """Records of about `size` bytes each, the same for the same numbers; returns the size of the file."""
    chance = random.Random(1)
    with path.open("w", encoding="utf-8") as file:
        for number in range(agents):
            text = " ".join(chance.choices(WORDS, k=size * 10 // 67))
            fields = {
                "name": f"Agent {number}",
                "instructions": text,
                "model": {"provider": "demo", "name": "echo", "temperature": 0.5},
                "tools": ["calculator"],
                "metadata": {"number": number, "nested": {"list": [1, None, True]}},
            }
            record = {"id": f"agent-{number:06d}", "ownerId": "", "agent": fields}
            file.write(json.dumps(record, ensure_ascii=False) + "\n")
    return path.stat().st_size


def peak() -> int:
    """The most memory that this process ever held, in bytes."""
    return int(re.findall(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())[0]) * 1024


def do(job: Job) -> dict[str, Any]:
    """Let a process of its own do the job: what it came to, its seconds, and its peak beside what it began with."""
    command = [sys.executable, "-m", "benchmarks.exchange", "--job", str(job.pk)]
    done = subprocess.run(command, cwd=PROJECT, check=True, stdout=subprocess.PIPE, text=True)
    job.refresh_from_db()
    assert job.state == Job.State.DONE, job.error
    return {"result": job.result, **json.loads(done.stdout.splitlines()[-1])}


def do_here(job_id: str) -> None:
    runner.run_claimed(
        "00000000-0000-0000-0000-000000000000"
    )  # opens the connection, which is not the job's to answer for
    before, began, busy = peak(), time.perf_counter(), time.process_time()
    runner.run_claimed(job_id)
    seconds, of_cpu = time.perf_counter() - began, time.process_time() - busy
    print(json.dumps({"seconds": seconds, "cpu": of_cpu, "before": before, "peak": peak()}))


def take_in(file: Path, **options: Any) -> dict[str, Any]:
    job = Job.objects.create(kind=IMPORT, requested_by=root(), parameters={"name": file.name, **options})
    os.link(file, exchange_folder() / f"{job.pk}.upload")
    return do(job)


def export() -> dict[str, Any]:
    return do(Job.objects.create(kind=EXPORT, requested_by=root()))


def root() -> Any:
    return get_user_model().objects.get_or_create(username="root", defaults={"is_superuser": True})[0]


def told(what: str, figures: dict[str, Any]) -> dict[str, Any]:
    result = {name: value for name, value in figures["result"].items() if name not in ("records", "file")}
    seconds, memory = (figures["seconds"], figures["cpu"]), (figures["peak"] >> 20, figures["before"] >> 20)
    print(f"{what}: {seconds[0]:.1f} s ({seconds[1]:.1f} s of CPU), peak {memory[0]} MB ({memory[1]} MB idle)")
    print(f"    {result if 'create' in result else figures['result']}", flush=True)
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--agents", type=int, default=10_000)
    parser.add_argument("--bytes", type=int, default=6000, help="of each record, roughly")
    parser.add_argument("--no-dry-run", action="store_true")
    parser.add_argument("--json", action="store_true", help="the figures again as the last line")
    parser.add_argument("--job", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.job:
        return do_here(options.job)
    call_command("migrate", verbosity=0)
    file = exchange_folder() / "benchmark.jsonl"
    size = write_file(file, options.agents, options.bytes)
    print(f"{options.agents} agents, {size / 1e6:.1f} MB, {connection.vendor}", flush=True)

    steps: dict[str, Callable[[], dict[str, Any]]] = {}
    if not options.no_dry_run:
        steps["dry run"] = partial(take_in, file, dryRun=True)
    steps |= {"import": partial(take_in, file), "import of the same": partial(take_in, file)}
    steps |= {"export": export, "export again": export}
    figures = {what: told(what, do_it()) for what, do_it in steps.items()}
    if options.json:
        for each in figures.values():
            each["result"].pop("records", None) if "create" in each["result"] else None
        print(json.dumps(figures))
    return None


if __name__ == "__main__":
    main()
