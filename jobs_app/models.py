"""Long work as rows: the truth about a job is here, a message to a worker only carries its id."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, ClassVar, Self

from django.conf import settings
from django.db import models
from django.db.models import F, Q
from django.utils import timezone

from agentcms.ids import uuid7

MAX_ATTEMPTS = 5


def lease_duration() -> timedelta:
    """A worker that says nothing for so long has died."""
    return timedelta(seconds=settings.JOB_LEASE)


class LeaseLost(Exception):
    """The job belongs to another worker now, because this one was silent for longer than its lease."""


class JobQuerySet(models.QuerySet["Job"]):
    def due(self) -> Self:
        """Jobs that wait, or whose worker has died."""
        return self.filter(Q(state=Job.State.QUEUED) | Q(state=Job.State.RUNNING, lease_until__lt=timezone.now()))

    def late(self) -> Self:
        """Jobs that wait for longer than a working worker would let them, or whose worker has died."""
        now = timezone.now()
        return self.filter(
            Q(state=Job.State.QUEUED, created_at__lt=now - lease_duration())
            | Q(state=Job.State.RUNNING, lease_until__lt=now)
        )

    def for_user(self, user: Any) -> Self:
        """The jobs that a caller asked for; superusers see all."""
        if not user.is_authenticated:
            return self.none()
        return self if user.is_superuser else self.filter(requested_by=user)

    def claim(self, job_id: Any) -> Job | None:
        """Take a due job for this worker, or None where another has it; one statement, so that two never both do."""
        taken = (
            self.due()
            .filter(pk=job_id, attempts__lt=MAX_ATTEMPTS)
            .update(
                state=Job.State.RUNNING,
                attempts=F("attempts") + 1,
                started_at=timezone.now(),
                lease_until=timezone.now() + lease_duration(),
            )
        )
        return self.get(pk=job_id) if taken else None

    def begin(self, kind: str, parameters: dict[str, Any]) -> Job:
        """A job that this process does from the start, so that no other ever sees it waiting."""
        now = timezone.now()
        taken = {"state": Job.State.RUNNING, "attempts": 1, "started_at": now, "lease_until": now + lease_duration()}
        return self.create(kind=kind, parameters=parameters, **taken)


class Job(models.Model):
    """One piece of long work: who asked, how far it is, what came of it."""

    class State(models.TextChoices):
        QUEUED = "queued", "Queued"
        RUNNING = "running", "Running"
        DONE = "done", "Done"
        FAILED = "failed", "Failed"

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    kind = models.CharField(max_length=40, editable=False)
    state = models.CharField(max_length=16, choices=State, default=State.QUEUED, editable=False)
    requested_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.SET_NULL, null=True, editable=False, related_name="jobs"
    )
    parameters = models.JSONField(default=dict, editable=False)
    done = models.PositiveIntegerField("progress", default=0, editable=False)
    total = models.PositiveIntegerField(null=True, editable=False)
    cursor = models.JSONField(null=True, editable=False, help_text="Where the next attempt goes on.")
    result = models.JSONField(null=True, editable=False)
    error = models.TextField(blank=True, default="", editable=False)
    attempts = models.PositiveSmallIntegerField(default=0, editable=False)
    lease_until = models.DateTimeField(null=True, editable=False)
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    started_at = models.DateTimeField(null=True, editable=False)
    finished_at = models.DateTimeField(null=True, editable=False)

    objects = JobQuerySet.as_manager()

    class Meta:
        ordering: ClassVar = ["-created_at"]
        indexes: ClassVar = [models.Index(fields=["state", "lease_until"], name="job_due")]

    def __str__(self) -> str:
        return f"{self.kind} ({self.get_state_display().lower()})"

    @property
    def is_late(self) -> bool:
        """Whether it waits for longer than a working worker would let it, or its worker has died."""
        if self.state == self.State.QUEUED:
            return timezone.now() - self.created_at > lease_duration()
        return self.state == self.State.RUNNING and self.lease_until is not None and self.lease_until < timezone.now()

    def requeue(self) -> None:
        """Queue a job that failed once more; it goes on where it stopped."""
        failed = Job.objects.filter(pk=self.pk, state=Job.State.FAILED)
        failed.update(state=Job.State.QUEUED, attempts=0, error="", finished_at=None, created_at=timezone.now())

    def report_progress(self, *, done: int, total: int | None = None, cursor: Any = None, result: Any = None) -> None:
        """Note how far the work is and keep the lease. Raises Lost where another worker took over."""
        said = {"done": done, "total": total, "cursor": cursor, "result": result}
        self._write(
            lease_until=timezone.now() + lease_duration(),
            **{key: value for key, value in said.items() if value is not None},
        )

    def finish(self, result: Any) -> None:
        self._write(state=self.State.DONE, result=result, finished_at=timezone.now(), lease_until=None)

    def fail(self, error: str) -> None:
        self._write(state=self.State.FAILED, error=error, finished_at=timezone.now(), lease_until=None)

    def _write(self, **values: Any) -> None:
        # The claim fences: a worker that lost its lease and wakes up again writes nothing.
        claim = {"attempts": self.attempts, "started_at": self.started_at}
        mine = Job.objects.filter(pk=self.pk, state=self.State.RUNNING, **claim)
        if not mine.update(**values):
            raise LeaseLost(f"Job {self.pk} was taken over by another worker.")
        for name, value in values.items():
            setattr(self, name, value)


class Heartbeat(models.Model):
    """When something that must not stop was last seen alive."""

    BEAT: ClassVar = "beat"
    LATE: ClassVar = timedelta(seconds=90)

    name = models.CharField(primary_key=True, max_length=40)
    at = models.DateTimeField()

    def __str__(self) -> str:
        return f"{self.name} at {self.at:%H:%M:%S}"

    @classmethod
    def note(cls, name: str) -> None:
        cls.objects.update_or_create(name=name, defaults={"at": timezone.now()})

    @classmethod
    def age(cls, name: str) -> timedelta | None:
        """How long ago it was seen; None where it never was."""
        at = cls.objects.filter(name=name).values_list("at", flat=True).first()
        return None if at is None else timezone.now() - at
