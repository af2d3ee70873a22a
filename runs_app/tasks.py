"""Celery tasks of runs. Importing this module also registers the job handlers of runs."""

from __future__ import annotations

from celery import shared_task

from runs_app import cleanup, scoring  # noqa: F401  registers their handlers
from runs_app.engine import leases
from runs_app.usage import rollup  # noqa: F401  registers its step of the clean-up


@shared_task
def reap_runs() -> None:
    """End the runs whose process has died and that nobody reads."""
    leases.end_lost_runs()
