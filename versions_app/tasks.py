"""Nightly jobs on histories: pruning and the integrity check."""

from __future__ import annotations

from datetime import timedelta

from celery import shared_task

from jobs_app.runner import enqueue_once_per_period, job_handler, offer_to_superusers
from versions_app import cleanup  # noqa: F401  registers its expired rows
from versions_app.exchange import export_job, import_job  # noqa: F401  registers its handler
from versions_app.integrity import check
from versions_app.pruning import PRUNE


@shared_task
def prune_versions() -> None:
    """Enqueue the nightly pruning, once even if several schedulers run."""
    enqueue_once_per_period(PRUNE, timedelta(hours=12))


@shared_task
def check_history() -> None:
    """Enqueue the nightly integrity check, once even if several schedulers run."""
    enqueue_once_per_period(check.CHECK_HISTORY, timedelta(hours=12))


job_handler(check.CHECK_HISTORY, "Verification of histories")(check.run_check)
offer_to_superusers("prune-dry-run", "Preview pruning", PRUNE, {"dryRun": True})
offer_to_superusers("export-agents", "Export all agents", export_job.EXPORT, start=export_job.start_agent_export)
offer_to_superusers("check-history", "Verify histories", check.CHECK_HISTORY)
