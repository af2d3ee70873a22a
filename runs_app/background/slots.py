"""The places of background tasks: how many run at once, in all and of one agent. The others wait for a free place."""

from __future__ import annotations

from collections import Counter

from django.conf import settings
from django.db import transaction

from agentcms.db.locks import lock_name
from jobs_app import runner
from runs_app.models import BackgroundTask

RUN_TASK = "background_task"  # the kind of job
MAX_WAITING_READ = 500  # the oldest waiting tasks that are looked at when a place is free


def fill_places() -> int:
    """Start waiting tasks, the oldest first, while places are free. Return their number."""
    if not BackgroundTask.objects.waiting().exists():
        return 0
    with transaction.atomic():
        lock_name("places of background tasks")
        taken = Counter(BackgroundTask.objects.in_places().order_by().values_list("agent_key", flat=True))
        started = 0
        for task in BackgroundTask.objects.waiting().order_by("created_at", "number")[:MAX_WAITING_READ]:
            if taken.total() >= settings.BACKGROUND_TASKS:
                break
            if taken[task.agent_key] < settings.BACKGROUND_TASKS_PER_AGENT:
                start_task(task)
                taken[task.agent_key] += 1
                started += 1
    return started


def start_task(task: BackgroundTask) -> None:
    """Create the job of a task. The caller holds the lock of the places."""
    job = runner.enqueue(RUN_TASK, {"task": str(task.pk)})
    BackgroundTask.objects.filter(pk=task.pk).update(job=job)
