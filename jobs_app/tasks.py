"""What the broker carries: the ids of jobs, and the beat that sends them again."""

from __future__ import annotations

from datetime import timedelta

from celery import shared_task

from jobs_app import runner
from jobs_app.cleanup import CLEAN_UP


@shared_task
def run_job(job_id: str) -> None:
    """Do one job."""
    runner.run_claimed(job_id)


@shared_task
def send_due_jobs() -> None:
    """Send every job again that waits for a worker."""
    runner.send_due()


@shared_task
def clean_up() -> None:
    """Start the nightly clean-up, once however many beats there are."""
    runner.enqueue_once_per(CLEAN_UP, timedelta(hours=12))
