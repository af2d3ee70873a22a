"""The slots of background tasks: how many run at once, in all and of one agent. The others wait for a free slot."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from django.conf import settings
from django.db import transaction

from agentcms.db.locks import lock_name
from jobs_app import runner
from jobs_app.kinds import register_title
from runs_app.models import BackgroundTask

RUN_TASK = "background_task"  # the kind of job
# Here and not at the handler, whose module web processes do not import.
register_title(RUN_TASK, "Background task")


def fill_slots() -> int:
    """Start waiting tasks, the oldest first, while slots are free. Return their number."""
    if not BackgroundTask.objects.waiting().exists():
        return 0
    with transaction.atomic():
        # A free slot has no row to lock. Two processes that count at once would both give it away.
        # The name stays: during an upgrade, processes of the previous release take the same lock.
        lock_name("places of background tasks")
        taken = Counter(BackgroundTask.objects.in_slots().order_by().values_list("agent_key", flat=True))
        started = 0
        while taken.total() < settings.BACKGROUND_TASKS and (task := find_next(taken)) is not None:
            start_task(task)
            taken[task.agent_key] += 1
            started += 1
    return started


def find_next(taken: Mapping[str, int]) -> BackgroundTask | None:
    """Return the oldest waiting task of an agent that has a free slot, however many other tasks are older."""
    full = [agent for agent, count in taken.items() if count >= settings.BACKGROUND_TASKS_PER_AGENT]
    waiting = BackgroundTask.objects.waiting().exclude(agent_key__in=full)
    return waiting.order_by("created_at", "number").first()


def start_task(task: BackgroundTask) -> None:
    """Create the job of a task. The caller holds the lock of the slots."""
    job = runner.enqueue(RUN_TASK, {"task": str(task.pk)})
    BackgroundTask.objects.filter(pk=task.pk).update(job=job)
