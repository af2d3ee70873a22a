"""The clean-up of tables that grow. An app registers a function that returns its expired rows:

@expired_rows("sessions")
def expired_sessions() -> QuerySet[Any]: ...
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.contrib.admin.models import LogEntry
from django.contrib.sessions.models import Session
from django.db.models import QuerySet
from django.utils import timezone

from agentcms.logs import describe_exception
from agentcms.wire.json_types import JSONObject
from jobs_app.models import Job, LeaseLost, ReportRow
from jobs_app.runner import job_handler, offer_to_superusers

log = logging.getLogger(__name__)

CLEAN_UP = "clean_up"
DELETED_PER_BATCH = 1000

ExpiredRows = Callable[[], QuerySet[Any]]

_expired_rows: dict[str, ExpiredRows] = {}
_batch_sizes: dict[str, int] = {}  # of tables with few rows per batch
_first_steps: list[Callable[[], Iterable[object]]] = []
_steps: list[Callable[[], None]] = []

offer_to_superusers("clean-up", "Clean up now", CLEAN_UP)


def expired_rows(name: str, per_batch: int | None = None) -> Callable[[ExpiredRows], ExpiredRows]:
    """Register a function that returns the expired rows of a table. The report has them under the name.

    `per_batch` rows are deleted in one transaction, where many others are deleted with each.
    """

    def register(rows: ExpiredRows) -> ExpiredRows:
        _expired_rows[name] = rows
        if per_batch is not None:
            _batch_sizes[name] = per_batch
        return rows

    return register


def cleanup_step(step: Callable[[], None]) -> Callable[[], None]:
    """Register a function that cleans up something else, such as files."""
    _steps.append(step)
    return step


def before_cleanup(step: Callable[[], Iterable[object]]) -> Callable[[], Iterable[object]]:
    """Register a generator function that needs the rows which are about to expire. It must be safe to repeat.

    It yields after each part of its work, and the job renews its lease.
    """
    _first_steps.append(step)
    return step


@job_handler(CLEAN_UP, "Clean-up")
def delete_expired_rows(job: Job) -> JSONObject:
    """Delete all expired rows in batches, between the steps before and after.

    A table or a step that fails does not keep back the others. Raise the first error at the end, so that the job
    fails or is repeated. Without one of the steps before, nothing is deleted: it needs these rows.
    """
    errors: list[Exception] = []
    for first_step in _first_steps:
        with collecting_errors(errors, f"step {first_step.__name__}"):
            for _ in first_step():
                job.report_progress(done=job.done)
        if errors:
            raise errors[0]
    # An attempt that was interrupted has stored what it removed.
    removed: dict[str, int] = job.cursor or {}
    # By name: "job reports" come before "jobs", and each attempt begins with the same table.
    for name, rows in sorted(_expired_rows.items()):
        with collecting_errors(errors, f"table {name}"):
            delete_all_batches(job, name, rows, removed)
    for step in _steps:
        with collecting_errors(errors, f"step {step.__name__}"):
            step()
        job.report_progress(done=job.done)
    if errors:
        raise errors[0]
    return {"removed": removed}


@contextmanager
def collecting_errors(errors: list[Exception], part: str) -> Iterator[None]:
    """Add the error of a part of the clean-up to the errors, and log it."""
    try:
        yield
    except LeaseLost:
        raise
    except Exception as error:
        log.warning("The %s of the clean-up failed: %s", part, describe_exception(error))
        errors.append(error)


def delete_all_batches(job: Job, name: str, rows: ExpiredRows, removed: dict[str, int]) -> None:
    """Delete the expired rows of a table, and add their number to `removed`."""
    removed.setdefault(name, 0)
    while count := delete_expired_batch(rows, _batch_sizes.get(name, DELETED_PER_BATCH)):
        removed[name] += count
        job.report_progress(done=sum(removed.values()), cursor=removed)


def delete_expired_batch(rows: ExpiredRows, size: int) -> int:
    """Delete the next expired rows, at most so many, and return their number."""
    # Oldest first: in another order each batch would scan all rows that are not expired.
    keys = list(rows().order_by("pk").values_list("pk", flat=True)[:size])
    # Filter again: a row may have changed since.
    _, removed = rows().filter(pk__in=keys).delete() if keys else (0, {})
    return removed.get(rows().model._meta.label, 0)  # without the rows that referred to them


@expired_rows("sessions")
def expired_sessions() -> QuerySet[Session]:
    return Session.objects.filter(expire_date__lt=timezone.now())


@expired_rows("jobs")
def old_jobs() -> QuerySet[Job]:
    """Return finished jobs after JOB_DAYS, unless their file was requested again since."""
    limit = timezone.now() - timedelta(days=settings.JOB_DAYS)
    return Job.objects.filter(finished_at__lt=limit).exclude(file__used_at__gte=limit).only("pk")


@expired_rows("job reports")  # before the jobs, because a report may have thousands of rows
def old_report_rows() -> QuerySet[ReportRow]:
    return ReportRow.objects.filter(job__in=old_jobs())


@expired_rows("admin log")
def old_log_entries() -> QuerySet[LogEntry]:
    """Return the expired log entries of the admin."""
    return LogEntry.objects.filter(action_time__lt=timezone.now() - timedelta(days=settings.ADMIN_LOG_DAYS))
