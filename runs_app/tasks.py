"""What beat sets off here, and the kinds of jobs that a worker does for runs."""

from __future__ import annotations

from celery import shared_task

from runs_app import cleanup, scoring  # noqa: F401  importing them registers their work
from runs_app.engine import leases


@shared_task
def reap_runs() -> None:
    """Give up the runs whose process has died and that nobody reads."""
    leases.end_lost_runs()
