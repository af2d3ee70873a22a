"""Duration and peak memory of a large import and export.

    .venv/bin/python -m benchmarks.exchange --agents 10000
    .venv/bin/python -m tests.postgres -- .venv/bin/python -m benchmarks.exchange

Uses the database of DATABASE_URL and adds agents to it, or SQLite in a temporary data folder. Each job runs in a new
process, so that the peak memory is that of the job.
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
from django.core.files.base import File  # noqa: E402
from django.core.management import call_command  # noqa: E402
from django.db import connection  # noqa: E402

from agentcms.server.processes import PROJECT  # noqa: E402
from jobs_app import runner  # noqa: E402
from jobs_app.models import Job  # noqa: E402
from versions_app.exchange.export_job import EXPORT  # noqa: E402
from versions_app.exchange.import_job import StoredUpload, start_import  # noqa: E402

NO_JOB = "00000000-0000-0000-0000-000000000000"
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

Step = Callable[[], dict[str, Any]]


def write_file(path: Path, agents: int, size: int) -> int:
    """Write records of about `size` bytes each, always the same ones. Return the size of the file."""
    rng = random.Random(1)
    with path.open("w", encoding="utf-8") as file:
        for number in range(agents):
            text = " ".join(rng.choices(WORDS, k=size * 10 // 67))
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


def peak_memory() -> int:
    """Return the peak resident memory of this process, in bytes."""
    return int(re.findall(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())[0]) * 1024


def run_in_process(job: Job) -> dict[str, Any]:
    """Run a job in a new process. Return its result, duration and CPU time, and its memory before and at the peak."""
    command = [sys.executable, "-m", "benchmarks.exchange", "--job", str(job.pk)]
    done = subprocess.run(command, cwd=PROJECT, check=True, stdout=subprocess.PIPE, text=True)
    job.refresh_from_db()
    assert job.state == Job.State.DONE, job.error
    return {"result": job.result, **json.loads(done.stdout.splitlines()[-1])}


def run_here(job_id: str) -> None:
    """Run a job in this process and print the measurements as JSON."""
    # Opens the database connection, which is not part of the measurement.
    runner.run_claimed(NO_JOB)
    before, started, cpu = peak_memory(), time.perf_counter(), time.process_time()
    runner.run_claimed(job_id)
    seconds, cpu = time.perf_counter() - started, time.process_time() - cpu
    print(json.dumps({"seconds": seconds, "cpu": cpu, "before": before, "peak": peak_memory()}))


def import_file(file: Path, **options: Any) -> dict[str, Any]:
    with file.open("rb") as content:
        upload = StoredUpload(File(content), file.stat().st_size)
    return run_in_process(start_import(superuser(), {"name": file.name, **options}, upload))


def export() -> dict[str, Any]:
    return run_in_process(Job.objects.create(kind=EXPORT, requested_by=superuser()))


def superuser() -> Any:
    return get_user_model().objects.get_or_create(username="root", defaults={"is_superuser": True})[0]


def run_step(name: str, step: Step) -> dict[str, Any]:
    """Run a step, print its measurements and return them, without the records of an import."""
    figures = step()
    result = figures["result"]
    if "create" in result:
        result = figures["result"] = {key: value for key, value in result.items() if key not in ("records", "file")}
    peak, before = figures["peak"] >> 20, figures["before"] >> 20
    print(f"{name}: {figures['seconds']:.1f} s ({figures['cpu']:.1f} s of CPU), peak {peak} MB ({before} MB idle)")
    print(f"    {result}", flush=True)
    return figures


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--agents", type=int, default=10_000)
    parser.add_argument("--bytes", type=int, default=6000, help="approximate size of each record")
    parser.add_argument("--no-dry-run", action="store_true")
    parser.add_argument("--json", action="store_true", help="print the figures as JSON in the last line")
    parser.add_argument("--job", help=argparse.SUPPRESS)
    return parser.parse_args()


def main() -> None:
    options = parse_arguments()
    if options.job:
        return run_here(options.job)
    call_command("migrate", verbosity=0)
    file = Path(os.environ["DATA_DIR"]) / "benchmark.jsonl"
    size = write_file(file, options.agents, options.bytes)
    print(f"{options.agents} agents, {size / 1e6:.1f} MB, {connection.vendor}", flush=True)

    steps: dict[str, Step] = {} if options.no_dry_run else {"dry run": partial(import_file, file, dryRun=True)}
    steps |= {"import": partial(import_file, file), "repeated import": partial(import_file, file)}
    steps |= {"export": export, "repeated export": export}
    figures = {name: run_step(name, step) for name, step in steps.items()}
    if options.json:
        print(json.dumps(figures))
    return None


if __name__ == "__main__":
    main()
