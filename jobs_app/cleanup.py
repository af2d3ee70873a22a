"""Every table that grows is kept to an age. An app registers which of its rows are old enough to go:

@cleaned("sessions")
def ended_sessions() -> QuerySet[Any]: ...
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.contrib.admin.models import LogEntry
from django.contrib.sessions.models import Session
from django.db.models import QuerySet
from django.utils import timezone

from jobs_app.models import Job
from jobs_app.runner import job_handler, offer_to_staff

CLEAN_UP = "clean_up"
BATCH = 1000

OldRows = Callable[[], QuerySet[Any]]

_expired_rows: dict[str, OldRows] = {}
_steps: list[Callable[[], None]] = []

offer_to_staff("clean-up", "Clean up now", CLEAN_UP)


def expired_rows(name: str) -> Callable[[OldRows], OldRows]:
    """Register the function that answers with the rows that may go."""

    def register(old: OldRows) -> OldRows:
        _expired_rows[name] = old
        return old

    return register


def cleanup_step(do: Callable[[], None]) -> Callable[[], None]:
    """Register what else is to be cleaned up, such as files."""
    _steps.append(do)
    return do


@job_handler(CLEAN_UP)
def delete_expired_rows(job: Job) -> dict[str, Any]:
    """Delete what is old enough, a thousand rows in a transaction."""
    removed: dict[str, int] = job.cursor or {}
    for name, old in sorted(_expired_rows.items()):
        removed.setdefault(name, 0)
        while count := delete_batch(old):
            removed[name] += count
            job.report_progress(done=sum(removed.values()), cursor=removed)
    for do in _steps:
        do()
    return {"removed": removed}


def delete_batch(old: OldRows) -> int:
    """Delete the next rows that are still old when they go; returns how many went."""
    # The oldest first: in another order each batch would begin by passing over all that is young.
    keys = list(old().order_by("pk").values_list("pk", flat=True)[:BATCH])
    return old().filter(pk__in=keys).delete()[0] if keys else 0


@expired_rows("sessions")
def expired_sessions() -> QuerySet[Any]:
    return Session.objects.filter(expire_date__lt=timezone.now())


@expired_rows("jobs")
def old_jobs() -> QuerySet[Any]:
    return Job.objects.filter(finished_at__lt=timezone.now() - timedelta(days=settings.JOB_DAYS))


@expired_rows("admin log")
def old_log_entries() -> QuerySet[Any]:
    """Who did what in the admin."""
    return LogEntry.objects.filter(action_time__lt=timezone.now() - timedelta(days=settings.ADMIN_LOG_DAYS))
