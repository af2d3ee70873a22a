"""Background jobs. The database has their state; a message to a worker has only the id of a job."""

from __future__ import annotations

import time
from datetime import timedelta
from typing import Any, ClassVar, Self
from uuid import UUID

from django.conf import settings
from django.core.files.base import File
from django.core.files.storage import storages
from django.db import models
from django.db.models import F, Q
from django.db.models.expressions import Combinable
from django.db.models.functions import Now
from django.utils import timezone

from access_app.caller import Caller
from agentcms.ids import uuid7
from agentcms.wire.json_types import JSONObject
from jobs_app.kinds import kind_title

MAX_ATTEMPTS = 5


def lease_duration() -> timedelta:
    """Return the time without progress after which a worker counts as dead."""
    return timedelta(seconds=settings.JOB_LEASE)


def lease_end() -> Combinable:
    """Return the end of a lease that begins now, by the clock of the database: those of two workers may differ."""
    return Now() + lease_duration()


class LeaseLost(Exception):
    """Another worker took over the job, because this one did not renew its lease in time, or the job was stopped."""


class JobQuerySet(models.QuerySet["Job"]):
    def due(self) -> Self:
        """Return the jobs that wait or whose worker died."""
        return self.filter(Q(state=Job.State.QUEUED) | Q(state=Job.State.RUNNING, lease_until__lt=Now()))

    def late(self) -> Self:
        """Return the jobs that wait for longer than a lease or whose worker died."""
        return self.filter(
            Q(state=Job.State.QUEUED, created_at__lt=Now() - lease_duration())
            | Q(state=Job.State.RUNNING, lease_until__lt=Now())
        )

    def fail(self, error: str) -> int:
        """Mark the jobs as failed, whoever has claimed them. Return how many there were."""
        return self.update(state=Job.State.FAILED, error=error, lease_until=None, finished_at=timezone.now())

    def shorten_leases(self) -> None:
        """Let leases end in time that began before the clock was set back. Workers that live renew them meanwhile."""
        too_long = self.filter(state=Job.State.RUNNING, lease_until__gt=Now() + 2 * lease_duration())
        too_long.update(lease_until=lease_end())

    def for_user(self, user: Caller) -> Self:
        """Return the jobs that the user requested, or all for a superuser.

        The file of an export has the data of an end user, or of the user. A job with a realm in its parameters is only
        that of callers in this realm.
        """
        if not user.is_authenticated:
            return self.none()
        key = getattr(user, "api_key", None)
        served = None if key is None else key.realm_owner
        if user.is_superuser and served is None:
            return self
        realm = f"u{user.pk}" if served is None else f"o{served}"
        in_realm = Q(parameters__realm__isnull=True) | Q(parameters__realm=realm)
        return self.filter(in_realm, requested_by=user)

    def without_large_columns(self) -> Self:
        """Leave out what may be long. Lists use this."""
        return self.defer(*Job.LARGE_COLUMNS)

    def unfinished(self) -> Self:
        return self.filter(state__in=(Job.State.QUEUED, Job.State.RUNNING))

    def claim(self, job_id: UUID | str) -> Job | None:
        """Claim a due job for this worker. Return None if another worker has it, or if it was deleted.

        One UPDATE decides, so two workers can never claim the same job.
        """
        claimed = (
            self.due()
            .filter(pk=job_id, attempts__lt=MAX_ATTEMPTS)
            .update(
                state=Job.State.RUNNING,
                attempts=F("attempts") + 1,
                started_at=timezone.now(),
                lease_until=lease_end(),
            )
        )
        return self.filter(pk=job_id).first() if claimed else None

    def create_claimed(self, kind: str, parameters: JSONObject) -> Job:
        """Create a job that this process has claimed already, so that no worker can claim it."""
        claim = {"state": Job.State.RUNNING, "attempts": 1, "started_at": timezone.now(), "lease_until": lease_end()}
        return self.create(kind=kind, parameters=parameters, **claim)


class Job(models.Model):
    """A background job with its progress and result."""

    class State(models.TextChoices):
        QUEUED = "queued", "Queued"
        RUNNING = "running", "Running"
        DONE = "done", "Done"
        FAILED = "failed", "Failed"

    LARGE_COLUMNS: ClassVar = ("parameters", "cursor", "result", "error")

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    kind = models.CharField(max_length=40, editable=False)
    state = models.CharField(max_length=16, choices=State, default=State.QUEUED, editable=False)
    requested_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.SET_NULL, null=True, editable=False, related_name="jobs"
    )
    parameters = models.JSONField(default=dict, editable=False)
    done = models.PositiveIntegerField("progress", default=0, editable=False)
    total = models.PositiveIntegerField(null=True, editable=False)
    cursor = models.JSONField(null=True, editable=False, help_text="The position where the next attempt continues.")
    result = models.JSONField(null=True, editable=False)
    error = models.TextField(blank=True, default="", editable=False)
    report_size = models.PositiveBigIntegerField(default=0, db_default=0, editable=False, help_text="In bytes.")
    attempts = models.PositiveSmallIntegerField(default=0, editable=False)
    # 55 characters are the length of a `traceparent` of W3C Trace Context.
    traceparent = models.CharField(max_length=55, blank=True, default="", db_default="", editable=False)
    lease_until = models.DateTimeField(null=True, editable=False)
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    started_at = models.DateTimeField(null=True, editable=False)
    finished_at = models.DateTimeField(null=True, editable=False)

    objects = JobQuerySet.as_manager()

    progressed_at = 0.0  # when the handler in this process began, or last reported progress

    class Meta:
        ordering: ClassVar = ["-created_at"]
        indexes: ClassVar = [
            models.Index(fields=["state", "lease_until"], name="job_due"),
            # A user has a job for each scored run, and pages and limits read only the user's exports and imports.
            models.Index(fields=["requested_by", "kind", "-created_at"], name="job_of_user"),
        ]

    def __str__(self) -> str:
        return f"{kind_title(self.kind)} ({self.get_state_display().lower()})"

    @property
    def is_late(self) -> bool:
        """True if the job waits for longer than a lease or its worker died."""
        if self.state == self.State.QUEUED:
            return timezone.now() - self.created_at > lease_duration()
        return self.state == self.State.RUNNING and self.lease_until is not None and self.lease_until < timezone.now()

    @property
    def is_finished(self) -> bool:
        return self.state in (self.State.DONE, self.State.FAILED)

    def discard(self) -> bool:
        """Delete the job with its file and report. Return False if a worker is running it."""
        is_running = Q(state=self.State.RUNNING, lease_until__gte=Now())
        # A worker that claims the job at the same time loses its lease, so it stops.
        # Only the key: Django reads the rows that it deletes, and a cursor or a result may be long.
        return Job.objects.exclude(is_running).filter(pk=self.pk).only("pk").delete()[0] > 0

    def requeue(self) -> None:
        """Queue a failed job again. It continues where it stopped."""
        failed = Job.objects.filter(pk=self.pk, state=Job.State.FAILED)
        # Created now, or it would be reported as late at once.
        failed.update(state=Job.State.QUEUED, attempts=0, error="", finished_at=None, created_at=timezone.now())

    def report_progress(
        self,
        *,
        done: int,
        total: int | None = None,
        cursor: object = None,
        result: object = None,
        report_size: int | None = None,
    ) -> None:
        """Store the progress and renew the lease. Raise LeaseLost if another worker took over."""
        self.progressed_at = time.monotonic()
        progress = {"done": done, "total": total, "cursor": cursor, "result": result, "report_size": report_size}
        self._write(
            lease_until=lease_end(),
            **{key: value for key, value in progress.items() if value is not None},
        )

    def renew_lease(self) -> None:
        """Raise LeaseLost if another worker took over."""
        self._write(lease_until=lease_end())

    def finish(self, result: object) -> None:
        """Store the result and mark the job as done."""
        self._write(state=self.State.DONE, result=result, finished_at=timezone.now(), lease_until=None)

    def release(self) -> None:
        """Queue the job for another worker, because this one stops."""
        # Not a failed attempt: a job that waits for a slot many times would run out of them.
        self._write(state=self.State.QUEUED, attempts=self.attempts - 1, lease_until=None)

    def fail(self, error: str) -> None:
        """Mark the job as failed."""
        self._write(state=self.State.FAILED, error=error, finished_at=timezone.now(), lease_until=None)

    def _write(self, **values: Any) -> None:
        # The claim is part of the condition: a worker that lost its lease must not overwrite the new one.
        claim = {"attempts": self.attempts, "started_at": self.started_at}
        claimed = Job.objects.filter(pk=self.pk, state=self.State.RUNNING, **claim)
        if not claimed.update(**values):
            raise LeaseLost(f"Job {self.pk} was taken over by another worker.")
        for name, value in values.items():
            if not isinstance(value, Combinable):  # the end of the lease, which only the database knows
                setattr(self, name, value)


class JobFile(models.Model):
    """The file of a job in the storage `exchange`, such as an export. The row is created after the file.

    Deleting the row deletes the file.
    """

    job = models.OneToOneField(Job, models.CASCADE, related_name="file", editable=False)
    name = models.CharField(max_length=200, editable=False)
    size = models.PositiveBigIntegerField(editable=False, help_text="In bytes.")
    fingerprint = models.CharField(
        max_length=64, blank=True, default="", editable=False, help_text="Equal for files with the same content."
    )
    used_at = models.DateTimeField(default=timezone.now, editable=False)

    def __str__(self) -> str:
        return self.name

    def open(self) -> File[bytes]:
        """Open the file for reading. Raise FileNotFoundError, and Unavailable if the storage does not respond."""
        return storages["exchange"].open(self.name)


class ReportRow(models.Model):
    """A row of the report of a job, such as the outcome of a line of an import."""

    # No index of its own: that of the constraint begins with the job.
    job = models.ForeignKey(Job, models.CASCADE, related_name="report_rows", editable=False, db_index=False)
    number = models.PositiveIntegerField(editable=False)
    action = models.CharField(max_length=16, editable=False)
    content = models.JSONField(editable=False)

    class Meta:
        ordering: ClassVar = ["job", "number"]
        constraints: ClassVar = [models.UniqueConstraint(fields=["job", "number"], name="report_row_number")]
        indexes: ClassVar = [models.Index(fields=["job", "action", "number"], name="report_row_action")]

    def __str__(self) -> str:
        return f"{self.number}: {self.action}"


class Heartbeat(models.Model):
    """The time when a process that must not stop last ran."""

    BEAT: ClassVar = "beat"
    RUN_WORKER: ClassVar = "run worker"  # any of those that execute durable runs
    MAX_AGE: ClassVar = timedelta(seconds=90)

    name = models.CharField(primary_key=True, max_length=40)
    at = models.DateTimeField()

    def __str__(self) -> str:
        return f"{self.name} at {self.at:%H:%M:%S}"

    @classmethod
    def record(cls, name: str) -> None:
        """Store the current time, by the clock of the database: those of two machines may differ."""
        # One statement as a rule. `update_or_create` alone would lock the row first.
        if not cls.objects.filter(name=name).update(at=Now()):
            cls.objects.update_or_create(name=name, defaults={"at": Now()})

    @classmethod
    def age(cls, name: str) -> timedelta | None:
        """Return the time since the last heartbeat, or None without one."""
        times = cls.objects.filter(name=name).values_list("at", Now()).first()
        # A later time is from before the clock was set back, and says as little as an old one.
        return None if times is None else abs(times[1] - times[0])
