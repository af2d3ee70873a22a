"""Handlers of background jobs, registered by kind.

    @job_handler("prune_versions")
    def prune(job: Job) -> dict[str, Any]: ...

A handler reports progress with `job.report_progress()`, continues from `job.cursor` after a crash and returns the
result of the job. If no attempt came to its end, `when_given_up` notes elsewhere that the job failed.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from typing import Any, NamedTuple
from uuid import UUID, uuid5

from celery import current_app
from django.conf import settings
from django.core.exceptions import PermissionDenied
from django.db import InterfaceError, OperationalError, transaction
from django.utils import timezone

from access_app.caller import Caller
from agentcms.backends.circuit_breaker import CircuitBreaker
from agentcms.db.after_commit import call_after_commit
from agentcms.errors import DISK_ERRORS, ApiError, Unavailable
from agentcms.ids import uuid7
from agentcms.logs import describe_exception
from agentcms.tracing import spans
from agentcms.wire.json_types import JSONObject
from jobs_app.kinds import register_title
from jobs_app.lease_renewal import renewed_lease
from jobs_app.models import MAX_ATTEMPTS, Job, JobQuerySet, LeaseLost

log = logging.getLogger(__name__)

# Seconds after the hour at which the periods of scheduled jobs begin: beat starts nothing at this time.
PERIOD_OFFSET = 900.0
SCHEDULE_NAMESPACE = UUID("7f3c3f0e-6f0b-5c1e-9d57-3d7f2f5d8a11")  # for the ids of scheduled jobs

STUCK_MESSAGE = (
    "The job made no progress for {hours:g} hours. Restart the workers, which still execute it, and retry it."
)
GIVEN_UP_MESSAGE = f"The job did not finish in {MAX_ATTEMPTS} attempts."

MAX_FAILURE_LENGTH = 2000  # characters
UNSTORABLE_CHARACTER = re.compile("[\0\ud800-\udfff]")  # NUL, and halves of surrogate pairs

broker_circuit = CircuitBreaker(retry_after=10)

CONTINUES = object()  # returned by a handler whose work goes on after it: that finishes the job itself

JobHandler = Callable[[Job], Any]
Starter = Callable[[Caller], Job]

_handlers: dict[str, JobHandler] = {}
_when_given_up: dict[str, Callable[[Job], None]] = {}


class OfferedJob(NamedTuple):
    """A job that superusers may start in the admin."""

    title: str
    kind: str
    parameters: JSONObject
    start: Starter | None  # instead of enqueueing it


offered_jobs: dict[str, OfferedJob] = {}


def job_handler(
    kind: str, title: str = "", when_given_up: Callable[[Job], None] | None = None
) -> Callable[[JobHandler], JobHandler]:
    """Register the handler of a kind of job, with the title that people see.

    `when_given_up` is called in the transaction that fails a job whose last attempt did not finish.
    """

    def register(handler: JobHandler) -> JobHandler:
        _handlers[kind] = handler
        if when_given_up is not None:
            _when_given_up[kind] = when_given_up
        if title:
            register_title(kind, title)
        return handler

    return register


def offer_to_superusers(
    name: str, title: str, kind: str, parameters: JSONObject | None = None, start: Starter | None = None
) -> None:
    """Let superusers start a job in the admin, by a button with this title."""
    offered_jobs[name] = OfferedJob(title, kind, parameters or {}, start)


def enqueue(
    kind: str,
    parameters: JSONObject | None = None,
    *,
    requested_by: Caller | None = None,
    job_id: UUID | None = None,
) -> Job:
    """Create a job and send it to a worker after the commit. Without a broker it starts later."""
    job = Job.objects.create(
        pk=job_id or uuid7(),
        kind=kind,
        parameters=parameters or {},
        requested_by_id=None if requested_by is None else requested_by.pk,
        traceparent=spans.traceparent_to_store(f"enqueue {kind}"),
    )
    call_after_commit(send_job, job.pk)
    return job


def enqueue_unless_queued(kind: str, parameters: JSONObject, user: Caller | None = None) -> Job:
    """Return the same job of the user that has not started yet. If there is none, create one and send it.

    A worker cannot claim the job until the transaction ends, so it finds what the transaction stores.
    """
    user_id = None if user is None else user.pk
    with transaction.atomic():
        # One without attempts left would never run.
        waiting = Job.objects.filter(state=Job.State.QUEUED, attempts__lt=MAX_ATTEMPTS).select_for_update(no_key=True)
        same = waiting.filter(kind=kind, requested_by=user_id, parameters=parameters)
        return same.order_by("created_at").first() or enqueue(kind, parameters, requested_by=user)


def enqueue_once_per_period(kind: str, period: timedelta) -> Job | None:
    """Create and send a scheduled job, at most once in a period, even with several beats. Return None otherwise."""
    slot = int((timezone.now().timestamp() - PERIOD_OFFSET) // period.total_seconds())
    # All beats compute the same primary key, so the database accepts only one job.
    job, is_new = Job.objects.get_or_create(
        pk=uuid5(SCHEDULE_NAMESPACE, f"{kind} {period} {slot}"), defaults={"kind": kind}
    )
    if not is_new:
        return None
    call_after_commit(send_job, job.pk)
    return job


def send_job(job_id: UUID) -> None:
    """Send a job to a worker. If the broker does not respond, beat sends the job later."""
    if not broker_circuit.allows_call():
        return
    try:
        _publish(job_id)
    except Exception as error:  # each transport of Celery has its own errors
        broker_circuit.record_failure()
        log.warning("The broker is unavailable, so beat sends job %s later: %s", job_id, describe_exception(error))


def _publish(job_id: UUID) -> None:
    failures = broker_circuit.failures
    with current_app.producer_or_acquire() as producer:
        if broker_circuit.failures > failures:  # while this thread waited for a connection of the pool
            return
        # By name, because the tasks import this module.
        current_app.send_task("jobs_app.tasks.run_job", [str(job_id)], producer=producer)
    broker_circuit.record_success()


def run_claimed(job_id: str) -> Job | None:
    """Claim and run a due job. Return None if it is already claimed or its kind is unknown, as in a newer release."""
    job = Job.objects.filter(kind__in=_handlers).claim(job_id)
    return job and _execute(job)


def run_now(kind: str, parameters: JSONObject) -> Job:
    """Create a job and run it in this process, for management commands."""
    return _execute(Job.objects.create_claimed(kind, parameters))


def _execute(job: Job) -> Job:
    try:
        _execute_leased(job)
    except LeaseLost:
        log.warning("Job %s (%s) was deleted, stopped, or taken over by another worker.", job.pk, job.kind)
    return job


def _execute_leased(job: Job) -> None:
    """Run the handler and store its result or failure. Raise LeaseLost."""
    attributes: spans.Attributes = {"agentcms.job.id": str(job.pk), "agentcms.job.attempt": job.attempts}
    try:
        with (
            spans.span(f"job {job.kind}", attributes, traceparent=job.traceparent),
            renewed_lease(job, partial(give_up_stuck, job)),
        ):
            result = _handlers[job.kind](job)
        if result is not CONTINUES:
            job.finish(result)
    except LeaseLost:
        raise
    except Exception as error:
        if is_transient(error):  # the lease expires and beat sends the job again
            log_failure(job, "was interrupted", error)
        else:
            log_failure(job, "failed", error)
            job.fail(failure_message(error))


def log_failure(job: Job, outcome: str, error: Exception) -> None:
    """Log a traceback unless the error says it all: a file that cannot be read, or a webhook that does not answer."""
    if isinstance(error, ApiError | PermissionDenied):
        log.warning("Job %s (%s) %s: %s.", job.pk, job.kind, outcome, describe_exception(error))
    else:
        log.exception("Job %s (%s) %s.", job.pk, job.kind, outcome)


def is_transient(error: Exception) -> bool:
    """Return True if another attempt may succeed: the database or the storage was unavailable, or a disk is full."""
    if isinstance(error, OSError):
        return error.errno in DISK_ERRORS
    return isinstance(error, OperationalError | InterfaceError | Unavailable)


def failure_message(error: Exception) -> str:
    """Return the error for the user of a job, as the database can store it.

    Only errors for callers have a sentence of their own.
    """
    name = "" if isinstance(error, ApiError | PermissionDenied) else f"{type(error).__name__}: "
    text = f"{name}{error}"[:MAX_FAILURE_LENGTH]
    # An error may quote what a file or a server contains.
    return UNSTORABLE_CHARACTER.sub("\N{REPLACEMENT CHARACTER}", text)


def stop_job(job: Job, error: str) -> bool:
    """Fail a job that waits or runs. Its handler ends at its next report. Return False if the job has ended."""
    return _fail_and_note(Job.objects.unfinished(), job, error)


def _fail_and_note(jobs: JobQuerySet, job: Job, error: str) -> bool:
    """Fail a job that is still one of these jobs, and note it elsewhere. Return False if it is none of them."""
    with transaction.atomic():
        is_failed = jobs.filter(pk=job.pk).fail(error) > 0
        if is_failed and job.kind in _when_given_up:
            _when_given_up[job.kind](job)
    return is_failed


def give_up_stuck(job: Job) -> None:
    """Fail a job whose handler in this process makes no progress. A repetition would block another worker too."""
    log.error("Job %s (%s) made no progress for %s seconds.", job.pk, job.kind, settings.JOB_TIMEOUT)
    stop_job(job, STUCK_MESSAGE.format(hours=round(settings.JOB_TIMEOUT / 3600, 1)))


def give_up_jobs() -> None:
    """Fail the jobs without attempts left, whose workers died or could not reach what they need."""
    exhausted = Job.objects.due().filter(attempts__gte=MAX_ATTEMPTS)
    for job in exhausted.filter(kind__in=_when_given_up):
        try:
            _fail_and_note(exhausted, job, GIVEN_UP_MESSAGE)
        except Exception:  # as of a row that is locked for long: the other jobs need not wait, and beat calls again
            log.exception("Job %s (%s) could not be given up.", job.pk, job.kind)
    # Without those kinds: a lease that has expired since would be given up without the note elsewhere.
    exhausted.exclude(kind__in=_when_given_up).fail(GIVEN_UP_MESSAGE)


def send_due() -> int:
    """Send all due jobs and fail those without attempts left. Return the number of sent jobs."""
    Job.objects.shorten_leases()
    give_up_jobs()
    due = Job.objects.due().filter(attempts__lt=MAX_ATTEMPTS)  # no worker claims the others
    # Beat calls again in 30 seconds or less, so the rest of a long queue need not fill the broker.
    job_ids = list(due.filter(kind__in=_handlers).order_by("created_at").values_list("pk", flat=True)[:100])
    for job_id in job_ids:
        send_job(job_id)
    return len(job_ids)
