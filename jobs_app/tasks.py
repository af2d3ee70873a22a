"""What the broker carries: the ids of jobs, and the beat that sends them again."""

from __future__ import annotations

from celery import shared_task

from jobs_app import work


@shared_task
def run_job(job_id: str) -> None:
    """Do one job."""
    work.run(job_id)


@shared_task
def send_due_jobs() -> None:
    """Send every job again that waits for a worker."""
    work.send_due()
