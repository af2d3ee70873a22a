"""Background tasks: tool calls that run outside of the run that made them, and the delivery of their results."""

from __future__ import annotations

from datetime import timedelta
from typing import ClassVar, Self

from django.db import models
from django.db.models import Exists, OuterRef, Q
from django.db.models.functions import Left
from django.utils import timezone

from access_app.caller import Caller
from access_app.permissions import has_role_everywhere, owner_ids_for
from access_app.role import Role
from agentcms.ids import uuid7
from agentcms.wire.json_types import JSONObject
from jobs_app.models import Job
from memory_app.models import Thread
from runs_app.models.run import MAX_PARENT_CALL_ID, AgentRun


class TaskStatus(models.TextChoices):
    """The states of a background task."""

    PENDING = "pending", "Waiting"
    RUNNING = "running", "Running"
    SUSPENDED = "suspended", "Waiting for a person"
    COMPLETED = "completed", "Completed"
    FAILED = "failed", "Failed"
    CANCELLED = "cancelled", "Cancelled"
    TIMED_OUT = "timed_out", "Timed out"


class BackgroundTaskQuerySet(models.QuerySet["BackgroundTask"]):
    def for_user(self, user: Caller) -> Self:
        """Filter to the tasks of the runs that a user may read. Former members see none: they show how agents work."""
        tasks = self.filter(run__in=AgentRun.objects.for_user(user).order_by().values("pk"))
        if has_role_everywhere(user, Role.VIEWER):
            return tasks
        return tasks.filter(owner_id__in=owner_ids_for(user)) if user.is_authenticated else self.none()

    def unfinished(self) -> Self:
        return self.filter(status__in=BackgroundTask.UNFINISHED_STATUSES)

    def waiting(self) -> Self:
        """Filter to the tasks that wait for a slot."""
        return self.filter(status=TaskStatus.PENDING, job=None)

    def in_slots(self) -> Self:
        """Filter to the tasks that occupy a slot. One whose sub-agent has waited for a person occupies none."""
        occupying = (TaskStatus.PENDING, TaskStatus.RUNNING)
        return self.filter(status__in=occupying, job__isnull=False, child_run_id=None)

    def of_child(self, child: AgentRun) -> Self:
        """Filter to the unfinished task whose call started a child run."""
        tasks = self.unfinished().with_child_call_id()
        return tasks.filter(run=child.parent_id, child_call_id=child.parent_call_id)

    def with_child_call_id(self) -> Self:
        """Add `child_call_id`: the ID of the call as the run of a sub-agent that it starts stores it."""
        return self.alias(child_call_id=Left("call_key", MAX_PARENT_CALL_ID))

    def undelivered(self) -> Self:
        """Filter to the finished tasks whose results nobody has got yet."""
        return self.filter(is_delivery_due=True)


def is_child_of_task() -> Exists:
    """Return the condition of child runs that unfinished tasks started: they outlive their parent."""
    tasks = BackgroundTask.objects.unfinished().with_child_call_id().filter(run=OuterRef("parent"))
    # In a `Q`, because mypy knows no aliases in a filter.
    return Exists(tasks.filter(Q(child_call_id=OuterRef("parent_call_id"))))


class BackgroundTask(models.Model):
    """A tool call that runs in the background.

    A call is deferred, so that its run goes on at once, or awaited, so that its run is suspended until the result.
    """

    Status = TaskStatus

    UNFINISHED_STATUSES: ClassVar = (TaskStatus.PENDING, TaskStatus.RUNNING, TaskStatus.SUSPENDED)

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    run = models.ForeignKey(AgentRun, models.CASCADE, related_name="background_tasks", editable=False)
    thread = models.ForeignKey(Thread, models.SET_NULL, null=True, editable=False, related_name="background_tasks")
    agent_key = models.CharField("agent ID", max_length=256, editable=False)
    owner_id = models.CharField("team", max_length=128, blank=True, default="", editable=False)
    tool = models.CharField(max_length=128, editable=False, help_text="The name of the tool, as the model sees it.")
    call_id = models.TextField("call ID", editable=False, help_text="As the model gave it.")
    call_key = models.CharField(max_length=192, editable=False, help_text="The ID of the call, unique in the run.")
    arguments = models.JSONField(default=dict, editable=False)
    is_awaited = models.BooleanField("awaited", default=False, editable=False, help_text="The run waits for it.")
    is_at_most_once = models.BooleanField("at most once", default=False, editable=False)
    is_ordered = models.BooleanField("ordered", default=False, editable=False)
    number = models.PositiveIntegerField(default=1, editable=False, help_text="The position of the call in its run.")
    depth = models.PositiveSmallIntegerField(default=1, editable=False, help_text="Tasks above it, and itself.")

    status = models.CharField(max_length=16, choices=TaskStatus, default=TaskStatus.PENDING, editable=False)
    result = models.JSONField(null=True, editable=False)
    error = models.TextField(blank=True, default="", editable=False)
    progress = models.JSONField(null=True, editable=False, help_text="What the tool reported: done, total, text.")
    timeout_ms = models.PositiveIntegerField("timeout (ms)", editable=False)
    max_retries = models.PositiveSmallIntegerField(default=0, editable=False)
    retries = models.PositiveSmallIntegerField(default=0, editable=False, help_text="After a failure of the tool.")
    attempts = models.PositiveSmallIntegerField(default=0, editable=False, help_text="By workers.")
    child_run_id = models.UUIDField(null=True, editable=False, help_text="A run of a sub-agent that waits.")
    job = models.ForeignKey(Job, models.SET_NULL, null=True, editable=False, related_name="+")
    traceparent = models.CharField(max_length=64, blank=True, default="", editable=False)
    is_delivery_due = models.BooleanField(default=False, editable=False)

    created_at = models.DateTimeField(default=timezone.now, editable=False)
    started_at = models.DateTimeField(null=True, editable=False)
    suspended_at = models.DateTimeField(null=True, editable=False)
    finished_at = models.DateTimeField(null=True, editable=False)

    objects = BackgroundTaskQuerySet.as_manager()

    class Meta:
        verbose_name = "background task"
        ordering: ClassVar = ["-created_at", "-id"]
        constraints: ClassVar = [models.UniqueConstraint(fields=["run", "call_key"], name="one_task_per_call")]
        indexes: ClassVar = [
            # The tasks that wait, run or are not delivered are few. All processes look for them often.
            models.Index(fields=["status", "created_at"], name="task_unfinished", condition=Q(finished_at=None)),
            models.Index(fields=["finished_at"], name="task_undelivered", condition=Q(is_delivery_due=True)),
            models.Index(fields=["child_run_id"], name="task_child_run", condition=Q(child_run_id__isnull=False)),
            models.Index(fields=["owner_id", "-created_at"], name="task_of_owner"),
        ]

    def __str__(self) -> str:
        return f"{self.tool} ({self.get_status_display().lower()})"

    @property
    def is_finished(self) -> bool:
        return self.status not in self.UNFINISHED_STATUSES

    @property
    def duration(self) -> timedelta | None:
        """The time from the start to the end, or to now."""
        return (self.finished_at or timezone.now()) - self.started_at if self.started_at else None

    @property
    def percent(self) -> int | None:
        """The part of the work that is done, if the tool has reported it."""
        progress: JSONObject = self.progress or {}
        done, total = progress.get("done"), progress.get("total")
        if not (isinstance(done, int | float) and isinstance(total, int | float) and total > 0):
            return None
        return int(100 * max(0, min(done, total)) / total)


class BackgroundTaskDelivery(models.Model):
    """The delivery of the result of a task. The row is unique, so that no result is delivered twice."""

    task = models.OneToOneField(BackgroundTask, models.CASCADE, primary_key=True, related_name="delivery")
    # Without a constraint: the run may be deleted. Null if the result became an event of the run that asked.
    woken_run_id = models.UUIDField(null=True, editable=False, db_index=True)
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    class Meta:
        verbose_name = "delivery of a background task"
        verbose_name_plural = "deliveries of background tasks"

    def __str__(self) -> str:
        return f"Delivery of {self.task_id}"
