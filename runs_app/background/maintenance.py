"""The maintenance of background tasks, repeated every few seconds, as a process may die between two steps."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from datetime import timedelta
from typing import cast
from uuid import UUID

from django.db.models import Exists, OuterRef
from django.utils import timezone

from agentcms.db.outages import logging_errors
from jobs_app.models import Job
from runs_app.background.delivery import deliver_due
from runs_app.background.endings import cancel_task, end_task, settle_task_of_child
from runs_app.background.slots import fill_slots
from runs_app.models import AgentRun, BackgroundTask
from runs_app.models.background_task import TaskStatus

log = logging.getLogger(__name__)

TASKS_PER_ROUND = 100
LOST_TASK_AGE = timedelta(hours=1)
UNKNOWN_END_MESSAGE = (
    "The worker of this task stopped again and again. It is not known whether the tool has done its work."
)


def maintain_tasks() -> None:
    """End tasks that nobody executes any more, deliver results, and start tasks that wait for a free slot."""
    # Mostly there is none, and this is called every five seconds.
    if BackgroundTask.objects.unfinished().exists():
        end_lost_tasks()
        cancel_tasks_of_cancelled_runs()
        settle_waiting_tasks()
        fill_slots()
    deliver_due()


def end_lost_tasks() -> int:
    """End the tasks whose job has ended without them or was deleted, and return their number."""
    # A worker ends the task before its job.
    left = BackgroundTask.objects.in_slots().filter(job__state__in=(Job.State.FAILED, Job.State.DONE))
    running = BackgroundTask.objects.filter(status=TaskStatus.RUNNING, job=None, child_run_id=None)
    orphaned = running.filter(started_at__lt=timezone.now() - LOST_TASK_AGE)
    tasks = [*left[:TASKS_PER_ROUND], *orphaned[:TASKS_PER_ROUND]]
    return end_each(tasks, lambda task: end_task(task, TaskStatus.FAILED, error=UNKNOWN_END_MESSAGE))


def cancel_tasks_of_cancelled_runs() -> None:
    tasks = BackgroundTask.objects.unfinished().filter(run__status=AgentRun.Status.CANCELLED)
    end_each(tasks[:TASKS_PER_ROUND], lambda task: cancel_task(task, is_delivered=False))


def settle_waiting_tasks() -> None:
    """End the tasks whose sub-agent has waited for a person, and whose run has ended or was deleted."""
    child = AgentRun.objects.filter(pk=OuterRef("child_run_id"), finished_at=None)
    tasks = BackgroundTask.objects.unfinished().filter(~Exists(child), child_run_id__isnull=False)
    end_each(tasks[:TASKS_PER_ROUND], lambda task: settle_task_of_child(cast(UUID, task.child_run_id)))


def end_each(tasks: Iterable[BackgroundTask], end: Callable[[BackgroundTask], bool]) -> int:
    """End tasks one by one and return their number. An unexpected error with one of them holds up no others."""
    count = 0
    for task in tasks:
        with logging_errors(log, "Background task %s could not be ended. It is tried again later.", task.pk):
            count += end(task)
    return count
