"""Celery tasks that run and schedule jobs."""

from __future__ import annotations

from datetime import timedelta

from celery import shared_task

from jobs_app import runner
from jobs_app.cleanup import CLEAN_UP


@shared_task
def run_job(job_id: str) -> None:
    """Run a job."""
    runner.run_claimed(job_id)


@shared_task
def send_due_jobs() -> None:
    """Send all jobs that wait for a worker."""
    runner.send_due()


@shared_task
def clean_up() -> None:
    """Start the nightly clean-up, once even with several beats."""
    runner.enqueue_once_per_period(CLEAN_UP, timedelta(hours=12))
