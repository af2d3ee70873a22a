"""What the broker carries: the ids of jobs, and the beat that sends them again."""

from __future__ import annotations

from datetime import timedelta

from celery import shared_task

from jobs_app import work
from jobs_app.cleaning import CLEAN_UP


@shared_task
def run_job(job_id: str) -> None:
    """Do one job."""
    work.run(job_id)


@shared_task
def send_due_jobs() -> None:
    """Send every job again that waits for a worker."""
    work.send_due()


@shared_task
def clean_up() -> None:
    """Start the nightly clean-up, once however many beats there are."""
    work.start_once(CLEAN_UP, timedelta(hours=12))
