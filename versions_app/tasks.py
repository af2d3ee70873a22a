"""Nightly work on the history, in batches, as jobs: pruning, checking, and forgetting old moves of live."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta
from typing import Any

from celery import shared_task
from django.conf import settings
from django.db import transaction
from django.db.models import Exists, OuterRef, QuerySet
from django.utils import timezone

from agents_app.models import Agent
from jobs_app.cleanup import cleanup_step, expired_rows
from jobs_app.models import Job
from jobs_app.runner import enqueue_once_per, job_handler, offer_to_staff
from versions_app.exchange import jobs
from versions_app.integrity import check
from versions_app.models import Activation
from versions_app.retention import delete_aged, delete_surplus, explain_retention

PRUNE = "prune_versions"
PRUNE_BATCH_SIZE = 1000
MAX_LISTED_VERSIONS = 1000
REMOVAL_REASONS = ("surplus", "too old")


@shared_task
def prune_versions() -> None:
    """Start the sweep of the schedule, once however many beats there are."""
    enqueue_once_per(PRUNE, timedelta(hours=12))


@shared_task
def check_history() -> None:
    """Start the nightly check, once however many beats there are."""
    enqueue_once_per(check.CHECK_HISTORY, timedelta(hours=12))


job_handler(check.CHECK_HISTORY)(check.run_check)
offer_to_staff("prune-dry-run", "Dry run of pruning", PRUNE, {"dryRun": True})
offer_to_staff("export-agents", "Export all agents", jobs.EXPORT, {"role": ""})
offer_to_staff("check-history", "Check the history", check.CHECK_HISTORY)


@cleanup_step
def delete_old_exchange_files() -> None:
    """Exports and uploads go with their jobs."""
    jobs.delete_old_files(settings.JOB_DAYS)


@expired_rows("activations")
def expired_activations() -> QuerySet[Any]:
    """Moves of live past their age; the newest of each agent always stays, because undo and retention read it."""
    newer = Activation.objects.filter(agent=OuterRef("agent"), pk__gt=OuterRef("pk"))
    limit = timezone.now() - timedelta(days=settings.ACTIVATION_DAYS)
    return Activation.objects.filter(Exists(newer), created_at__lt=limit)


@job_handler(PRUNE)
def prune_all(job: Job) -> dict[str, Any]:
    """Prune every agent to the limit, a thousand in a transaction; or, as a dry run, say what would go."""
    limit = job.parameters.get("limit") or settings.AGENT_VERSION_LIMIT
    if job.parameters.get("dryRun"):
        return preview_pruning(job, limit)
    job.report_progress(done=job.done, total=Agent.objects.count())
    state: dict[str, Any] = job.cursor or {"after": None, "removed": 0}
    while batch := next_agent_ids(state["after"]):
        with transaction.atomic():
            # An agent that is being saved is left out: its own save prunes it.
            free = list(
                Agent.objects.filter(pk__in=batch).select_for_update(skip_locked=True).values_list("pk", flat=True)
            )
            state = {"after": batch[-1], "removed": state["removed"] + delete_surplus(free, limit) + delete_aged(free)}
            job.report_progress(done=job.done + len(batch), cursor=state)
    return {"removed": state["removed"], "limit": limit}


def preview_pruning(job: Job, limit: int) -> dict[str, Any]:
    """What a sweep would remove, and why the rest stays; the first thousand that would go are listed."""
    done, total = 0, Agent.objects.count()  # what a worker that died had counted is counted anew
    why: Counter[str] = Counter()
    listed: list[dict[str, Any]] = []
    after = None
    while batch := next_agent_ids(after):
        for agent_id, number, verdict in explain_retention(batch, limit):
            why[verdict] += 1
            if verdict in REMOVAL_REASONS and len(listed) < MAX_LISTED_VERSIONS:
                listed.append({"agentId": agent_id, "versionNumber": number})
        after, done = batch[-1], done + len(batch)
        job.report_progress(done=done, total=total)
    going = sum(why.pop(verdict, 0) for verdict in REMOVAL_REASONS)
    return {"limit": limit, "removed": 0, "surplus": going, "versions": listed, "kept": dict(why)}


def next_agent_ids(after: str | None) -> list[str]:
    """The ids of the next agents in order."""
    agents = Agent.objects.order_by("pk") if after is None else Agent.objects.order_by("pk").filter(pk__gt=after)
    return list(agents.values_list("pk", flat=True)[:PRUNE_BATCH_SIZE])
