"""The kinds of long work: each a function that takes its job, registered by name.

    @work("prune_versions")
    def prune(job: Job) -> dict[str, Any]: ...

The function reports progress with `job.report_progress()`, continues from `job.cursor` after a worker died, and
returns what the job came to.
"""

from __future__ import annotations

import errno
import logging
from collections.abc import Callable
from datetime import timedelta
from typing import Any, NamedTuple
from uuid import UUID, uuid5

from celery import current_app
from django.db import InterfaceError, OperationalError, transaction
from django.utils import timezone

from jobs_app.models import MAX_ATTEMPTS, Job, LeaseLost

log = logging.getLogger(__name__)

PERIOD_OFFSET = 900.0  # seconds; the schedule starts nothing at a quarter past, so that periods begin there
SCHEDULE_NAMESPACE = UUID("7f3c3f0e-6f0b-5c1e-9d57-3d7f2f5d8a11")  # the namespace of the schedule's jobs

Handler = Callable[[Job], Any]

_handlers: dict[str, Handler] = {}


class StaffJob(NamedTuple):
    """A job that changes nothing of what users made, for staff to start by hand."""

    title: str
    kind: str
    parameters: dict[str, Any]


staff_jobs: dict[str, StaffJob] = {}


def job_handler(kind: str) -> Callable[[Handler], Handler]:
    """Register the function that does a kind of job."""

    def register(handler: Handler) -> Handler:
        _handlers[kind] = handler
        return handler

    return register


def offer_to_staff(name: str, title: str, kind: str, parameters: dict[str, Any] | None = None) -> None:
    """Let superusers start such a job from the admin."""
    staff_jobs[name] = StaffJob(title, kind, parameters or {})


def enqueue(kind: str, parameters: dict[str, Any] | None = None, *, requested_by: Any = None) -> Job:
    """Store a job and send it to a worker once it is committed; a broker that is away only delays it."""
    job = Job.objects.create(kind=kind, parameters=parameters or {}, requested_by=requested_by)
    transaction.on_commit(lambda: send(job), robust=True)
    return job


def enqueue_once_per(kind: str, period: timedelta) -> Job | None:
    """Store a job of the schedule, once in a period of the clock however many beats there are."""
    slot = int((timezone.now().timestamp() - PERIOD_OFFSET) // period.total_seconds())
    # The key is the same for everybody, so that the database lets one of them win.
    job, made = Job.objects.get_or_create(
        pk=uuid5(SCHEDULE_NAMESPACE, f"{kind} {period} {slot}"), defaults={"kind": kind}
    )
    if not made:
        return None
    transaction.on_commit(lambda: send(job), robust=True)
    return job


def send(job: Job) -> None:
    """Tell a worker. What goes wrong here is mended by the next beat."""
    current_app.send_task("jobs_app.tasks.run_job", [str(job.pk)])  # by name: tasks stand above


def run_claimed(job_id: str) -> Job | None:
    """Do a due job, once: a second message for it finds it taken. A kind of the next release waits for its workers."""
    job = Job.objects.filter(kind__in=_handlers).claim(job_id)
    return job and _execute(job)


def run_now(kind: str, parameters: dict[str, Any]) -> Job:
    """Store a job and do it at once in this process, as commands do."""
    return _execute(Job.objects.begin(kind, parameters))


def _execute(job: Job) -> Job:
    try:
        job.finish(_handlers[job.kind](job))
    except LeaseLost:
        log.warning("Job %s (%s) was taken over by another worker.", job.pk, job.kind)
    except Exception as error:
        if is_transient(error):  # the lease runs out and the job is sent again
            log.exception("Job %s (%s) was interrupted.", job.pk, job.kind)
        else:
            log.exception("Job %s (%s) failed.", job.pk, job.kind)
            job.fail(f"{type(error).__name__}: {error}"[:2000])
    return job


def is_transient(error: Exception) -> bool:
    """Whether the machine is to blame, and not the job: the database went away, or a disk is full."""
    if isinstance(error, OSError):
        return error.errno in (errno.ENOSPC, errno.EDQUOT)
    return isinstance(error, OperationalError | InterfaceError)


def send_due() -> int:
    """Send what waits again, and give up what no worker survived; returns how many were sent."""
    due = Job.objects.due()
    due.filter(attempts__gte=MAX_ATTEMPTS).update(
        state=Job.State.FAILED,
        error=f"No worker finished it in {MAX_ATTEMPTS} attempts.",
        finished_at=timezone.now(),
        lease_until=None,
    )
    jobs = list(due.filter(kind__in=_handlers).order_by("created_at")[:100])
    for job in jobs:
        send(job)
    return len(jobs)
