"""The steps of a background task while a worker executes it, each a short transaction."""

from __future__ import annotations

import logging
from uuid import UUID

from django.db.models import F
from django.db.models.functions import Coalesce, Now

from agentcms.db.outages import OUTAGE_ERRORS
from agentcms.wire.json_types import JSONObject
from runs_app.events.stream_chunks import to_storable_json
from runs_app.models import BackgroundTask
from runs_app.models.background_task import TaskStatus

log = logging.getLogger(__name__)


def claim_task(task_id: UUID) -> BackgroundTask | None:
    """Give a task to the worker that has its job. Return None if it has ended, or continues with its sub-agent."""
    unfinished = BackgroundTask.objects.filter(pk=task_id, status__in=(TaskStatus.PENDING, TaskStatus.RUNNING))
    claimable = unfinished.filter(child_run_id=None)
    # The number of the attempt fences the claim: `end_task` stores no end of an earlier one.
    claimed = claimable.update(
        status=TaskStatus.RUNNING, attempts=F("attempts") + 1, started_at=Coalesce("started_at", Now())
    )
    return BackgroundTask.objects.get(pk=task_id) if claimed else None


def was_cancelled(task_id: UUID) -> bool:
    """Return whether a person has cancelled a task, or its run was deleted."""
    status = BackgroundTask.objects.filter(pk=task_id).values_list("status", flat=True).first()
    return status in (None, TaskStatus.CANCELLED)


def count_retry(task: BackgroundTask) -> bool:
    """Count a retry of a task. Return False if another worker has the task."""
    own = BackgroundTask.objects.filter(pk=task.pk, attempts=task.attempts)
    if not own.update(retries=F("retries") + 1):
        return False
    task.refresh_from_db(fields=["retries"])  # not the attempts, which another worker may count meanwhile
    return True


def report_progress(task_id: UUID, progress: JSONObject) -> None:
    """Store what a tool reports of its progress. An outage of the database does not stop the tool."""
    try:
        running = BackgroundTask.objects.filter(pk=task_id, status=TaskStatus.RUNNING)
        running.update(progress=to_storable_json(progress))
    except OUTAGE_ERRORS as error:
        log.warning("The progress of background task %s could not be stored: %s", task_id, error)


def run_with_due_result(task_id: UUID) -> UUID | None:
    """Return the run of a task whose result is to be delivered, or None."""
    return BackgroundTask.objects.undelivered().filter(pk=task_id).values_list("run_id", flat=True).first()
