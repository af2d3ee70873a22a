"""Delivery of the results of deferred background tasks, each exactly once."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from uuid import UUID

from django.db import transaction
from django.db.models import Min
from django.utils import timezone

from runs_app.approvals.suspending import append_events
from runs_app.background.chunks import end_chunk
from runs_app.events.notifications import notifier
from runs_app.models import AgentRun, BackgroundTask, BackgroundTaskDelivery

GATHERING = timedelta(milliseconds=500)  # results of one conversation that end within this time come together
MAX_RUNS_PER_LOOK = 50


def deliver_due() -> None:
    """Deliver the results that are due and that nobody has delivered, because a process died or a run was active."""
    due = BackgroundTask.objects.undelivered().filter(finished_at__lt=timezone.now() - GATHERING)
    run_ids = due.order_by("finished_at").values_list("run_id", flat=True)[:MAX_RUNS_PER_LOOK]
    for run_id in dict.fromkeys(run_ids):
        deliver_results(run_id)


def deliver_results(run_id: UUID) -> int:
    """Deliver the results of a run that are due, as events of the run. Return their number.

    While a process executes the run, only that process may append events: then they are delivered later.
    """
    with transaction.atomic():
        run = AgentRun.objects.select_for_update(of=("self",)).filter(pk=run_id).first()
        if run is None or run.status in AgentRun.LEASED_STATUSES:
            return 0
        tasks = due_tasks(BackgroundTask.objects.undelivered().filter(run=run))
        if not tasks:
            return 0
        append_events(run, [end_chunk(task) for task in tasks])
        note_delivery(tasks, None)
    notifier.notify({run_id: True})
    return len(tasks)


def due_tasks(undelivered: Iterable[BackgroundTask]) -> list[BackgroundTask]:
    """Return the tasks whose results may be delivered now, in their order.

    Those of an ordered tool come in the order of the calls of their run, the others in the order of their ends.
    """
    tasks = sorted(undelivered, key=lambda task: (task.finished_at or task.created_at, task.number))
    ordered = sorted((task for task in tasks if task.is_ordered), key=lambda task: (task.run_id, task.number))
    next_ordered = iter(ordered)
    in_order = [next(next_ordered) if task.is_ordered else task for task in tasks]
    if not ordered:
        return in_order
    waiting = BackgroundTask.objects.unfinished().filter(run__in={task.run_id for task in ordered}, is_ordered=True)
    first_waiting = dict(waiting.order_by().values_list("run_id").annotate(Min("number")))
    return [
        task
        for task in in_order
        if not task.is_ordered or task.number < first_waiting.get(task.run_id, task.number + 1)
    ]


def note_delivery(tasks: Iterable[BackgroundTask], woken_run_id: UUID | None) -> None:
    """Record that results were delivered, in the transaction that delivers them."""
    ids = [task.pk for task in tasks]
    BackgroundTaskDelivery.objects.bulk_create(
        BackgroundTaskDelivery(task_id=task_id, woken_run_id=woken_run_id) for task_id in ids
    )
    BackgroundTask.objects.filter(pk__in=ids).update(is_delivery_due=False)
