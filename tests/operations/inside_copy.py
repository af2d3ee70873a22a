"""Functions that tests run in a process with the settings of a copy, by `run_inside`."""

import os
import signal
from datetime import timedelta
from typing import Any

from django.contrib.auth import get_user_model
from django.db.models import F
from django.utils import timezone

from benchmarks.sample_data import fill as fill
from jobs_app import runner
from jobs_app.models import Job
from runs_app.models import RunEvent

DRY_RUNS = 40
EVENT_SIZE = 50_000


def enqueue(kind: str) -> None:
    runner.enqueue(kind)


def send_again(kind: str) -> None:
    """Send another message for the only job of this kind."""
    runner.send_job(Job.objects.get(kind=kind).pk)


def send_dry_runs_repeatedly() -> None:
    """Create jobs that prune nothing, and send each of them four times."""
    jobs = [Job.objects.create(kind="prune_versions", parameters={"dryRun": True}) for _ in range(DRY_RUNS)]
    for _ in range(4):
        for job in jobs:
            runner.send_job(job.pk)


def create_missed_jobs() -> None:
    """Create two jobs of an hour ago: one that was never sent, and one whose worker died."""
    ago = timezone.now() - timedelta(hours=1)
    Job.objects.create(kind="clean_up", created_at=ago)
    running = {"state": "running", "attempts": 1, "started_at": ago, "lease_until": ago}
    Job.objects.create(kind="check_history", created_at=ago, **running)


def add_long_events(run_id: str, size: int) -> None:
    """Insert results of tools between the first event of a run and the others, of `size` bytes in all."""
    count = size // EVENT_SIZE
    RunEvent.objects.filter(run=run_id, number__gt=1).update(number=F("number") + count)
    chunk = {"type": "tool-result", "payload": {"toolCallId": "c", "toolName": "t", "result": "x" * EVENT_SIZE}}
    events = (RunEvent(run_id=run_id, number=number, type="tool-result", data=chunk) for number in range(2, count + 2))
    RunEvent.objects.bulk_create(events, batch_size=50)


def print_export_digest() -> None:
    """Print the digest of an export of all agents. It is the same for the same agents."""
    job = runner.enqueue("export_agents", requested_by=get_user_model().objects.get(username="ada"))
    done = runner.run_claimed(str(job.pk))
    assert done is not None
    print(done.result["sha256"])


def work_until_half_a_job_is_done() -> None:
    """Run a Celery worker that kills itself in the second half of a job."""
    from agentcms.celery import app

    report_progress = Job.report_progress

    def report_progress_or_die(job: Job, **options: Any) -> Any:
        if job.done > (job.total or 0) / 2:
            os.kill(os.getpid(), signal.SIGKILL)
        return report_progress(job, **options)

    Job.report_progress = report_progress_or_die  # type: ignore[method-assign]
    app.worker_main(["worker", "-P", "threads", "-c", "4"])
