"""Limits of each user: unfinished jobs, and the size of files and reports."""

from __future__ import annotations

from uuid import UUID

from django.conf import settings
from django.contrib.auth import get_user_model
from django.db import transaction
from django.db.models import Sum

from access_app.caller import Caller
from agentcms.errors import ApiError, Conflict
from agentcms.plural import pluralize
from agentcms.wire.json_types import JSONObject
from jobs_app import runner
from jobs_app.models import Job, JobFile, JobQuerySet, LeaseLost

JOB_RETRY_AFTER = 5  # seconds
NEEDED_MESSAGE = "Something waits for this job. Cancel what started it, such as the experiment, or wait until it ends."

_limited_kinds: set[str] = set()


class TooManyJobs(ApiError):
    """429: the user has too many unfinished jobs."""

    def __init__(self) -> None:
        limit = pluralize(settings.JOBS_PER_USER, "unfinished job")
        message = f"You have reached the limit of {limit}. Wait until one ends, or delete one that has not started."
        super().__init__(429, message, "too_many_jobs", headers={"Retry-After": str(JOB_RETRY_AFTER)})


class FileQuotaExceeded(ApiError):
    """429: the files and reports of the user's jobs are too large. Waiting does not help."""

    def __init__(self) -> None:
        super().__init__(
            429,
            f"Your exports, imports and their reports may have {settings.JOB_FILES_PER_USER >> 20} MB in total, and "
            "this one does not fit. Delete some that you no longer need.",
            "file_quota_exceeded",
        )


def limit_per_user(kind: str) -> None:
    """Count the unfinished jobs of a kind against the limit of their users."""
    _limited_kinds.add(kind)


def enqueue_for_user(kind: str, parameters: JSONObject, user: Caller, job_id: UUID | None = None) -> Job:
    """Enqueue a job of a user. Raise TooManyJobs."""
    with transaction.atomic():
        lock_jobs_of(user)
        require_free_job(user)
        return runner.enqueue(kind, parameters, requested_by=user, job_id=job_id)


def lock_jobs_of(user: Caller) -> None:
    """Let one transaction at a time check the limits of a user. On SQLite only one transaction writes anyway."""
    # Not the key, which inserted rows with a foreign key to the user lock: they need not wait.
    get_user_model().objects.select_for_update(no_key=True).filter(pk__in=[user.pk]).exists()


def require_free_job(user: Caller) -> None:
    """Raise TooManyJobs if the user has reached the limit."""
    if limited_jobs(user).unfinished().count() >= settings.JOBS_PER_USER:
        raise TooManyJobs


def limited_kinds() -> set[str]:
    """Return the kinds of exports and imports, and of jobs that superusers start."""
    return _limited_kinds | {offered_job.kind for offered_job in runner.offered_jobs.values()}


def limited_jobs(user: Caller) -> JobQuerySet:
    """Return the jobs that the user started, without those that score runs."""
    return Job.objects.filter(requested_by=user.pk, kind__in=limited_kinds())


def reject_needed_job(job: Job) -> None:
    """Raise Conflict if something waits for a job, such as an experiment, a document or the deletion of data."""
    if not job.is_finished and job.kind not in limited_kinds():
        raise Conflict(NEEDED_MESSAGE, "job_needed")


def require_quota(user: Caller, size: int = 0) -> None:
    """Raise FileQuotaExceeded if `size` more bytes exceed the quota of the user, or the quota is used up."""
    if max(size, 1) > settings.JOB_FILES_PER_USER - used_bytes(user):
        raise FileQuotaExceeded


def used_bytes(user: Caller) -> int:
    """Return the size of the files and reports of the user's jobs."""
    sizes = limited_jobs(user).aggregate(files=Sum("file__size"), reports=Sum("report_size"))
    return (sizes["files"] or 0) + (sizes["reports"] or 0)


def attach_file(job: Job, user: Caller, name: str, size: int, fingerprint: str = "") -> JobFile:
    """Record a stored file as that of the job. Raise FileQuotaExceeded, and LeaseLost if the job was deleted."""
    with transaction.atomic():
        lock_jobs_of(user)
        if not Job.objects.select_for_update(no_key=True).filter(pk=job.pk).exists():
            raise LeaseLost(f"Job {job.pk} was deleted.")
        JobFile.objects.filter(job=job).delete()  # that of an attempt whose worker died
        require_quota(user, size)
        return JobFile.objects.create(job=job, name=name, size=size, fingerprint=fingerprint)
