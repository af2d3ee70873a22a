"""Delivery of the results of deferred background tasks, each exactly once."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from datetime import timedelta
from uuid import UUID

from django.db import transaction
from django.db.models import Min
from django.utils import timezone

from access_app.role import RoleRequired
from agentcms.db.locks import lock_name
from agentcms.db.outages import logging_errors
from agentcms.errors import ApiError, Conflict, NotFound
from agentcms.ids import parse_uuid
from agentcms.wire.canonical import text_or_json
from agentcms.wire.json_types import JSONObject
from agents_app.configuration.schema import ConfigError
from agents_app.editing.archive_guard import AgentArchived
from agents_app.models import Agent
from memory_app.history.signal_markup import Signal
from runs_app.approvals.suspending import append_events
from runs_app.background.stream_chunks import end_chunk
from runs_app.engine.start.memory import active_run_id
from runs_app.events.notifications import notifier
from runs_app.models import AgentRun, BackgroundTask, BackgroundTaskDelivery
from runs_app.models.run_queryset import AgentRunQuerySet
from runs_app.resolution import ResolvedAgent, stored_agents
from runs_app.thread_signals.sending import TooManySignals, send_signal
from runs_app.thread_signals.woken_input import SIGNALS
from versions_app.models import AgentVersion

log = logging.getLogger(__name__)

GATHERING = timedelta(milliseconds=500)  # results of one conversation that end within this time come together
MAX_RUNS_PER_ROUND = 50
SIGNAL_PREFIX = "background-task-"  # of the IDs of signals about the ends of tasks
# Errors that another attempt to send a result to a thread would have again.
UNDELIVERABLE = (
    *(Agent.DoesNotExist, AgentArchived, AgentVersion.DoesNotExist),
    *(ConfigError, Conflict, NotFound, RoleRequired),
)


def deliver_due() -> None:
    """Deliver the results that are due and that nobody has delivered, because a process died or a run was active.

    An unexpected error with the results of one run holds up no others.
    """
    # The worker of a younger one delivers it itself, once it has gathered those that end soon after.
    due = BackgroundTask.objects.undelivered().filter(finished_at__lt=timezone.now() - GATHERING)
    runs = AgentRun.objects.filter(pk__in=due.order_by().values("run_id"))
    # At random: runs that work, and threads that are at a limit, may keep the oldest results for days.
    for run_id in runs.order_by("?").values_list("pk", flat=True)[:MAX_RUNS_PER_ROUND]:
        with logging_errors(log, "The results of run %s could not be delivered. They are tried again later.", run_id):
            deliver_results(run_id)


def deliver_results(run_id: UUID) -> int:
    """Deliver the results of a run that are due, with those of its caller in its conversation. Return their number.

    They are signals to the thread of the run: an idle thread is woken for one run. Without a thread, or if the thread
    is full or nobody can still run the agent there, they become events of the run.
    """
    run = AgentRun.objects.select_related("thread", "requested_by").without_large_columns().filter(pk=run_id).first()
    if run is None:
        return 0
    try:
        count = deliver_to_thread(run)
    except UNDELIVERABLE as error:
        log.info("The results of run %s become events of the run: %s", run_id, error)
        count = None
    except ApiError as error:  # the thread or the user has reached a limit for now
        log.warning("The results of run %s are delivered later: %s", run_id, error.error)
        return 0
    return deliver_to_run(run_id) if count is None else count


def deliver_to_thread(run: AgentRun) -> int | None:
    """Send the results that are due to its caller from the agent in a thread as signals, as many as may wait there.

    Return their number, or None if the run has no thread.
    """
    agent, thread = find_answering_agent(run), run.thread
    if agent is None or thread is None:
        return None
    with transaction.atomic():
        # Two workers that look for undelivered results at once would both send them.
        lock_name(f"results of thread {thread.pk}")
        tasks = due_tasks(BackgroundTask.objects.undelivered().filter(thread=thread, run__in=equal_runs(run)))
        for count, task in enumerate(tasks):
            active_id, options = active_run_id(thread), context_options(task.run_id)
            try:
                sent = send_signal(thread, result_signal(task), user=run.requested_by, agent=agent, options=options)
            except TooManySignals:
                if not count:
                    raise
                return count  # the others come when a run has seen these
            # A run that was active before was not woken by this result.
            note_delivery([task], sent.run_id if sent.run_id != active_id else None)
    return len(tasks)


def equal_runs(run: AgentRun) -> AgentRunQuerySet:
    """Return the runs whose results may come in the name of the caller of this one, from the same agent.

    A thread may have several participants. The run that a result wakes has the request context and the rights of one.
    """
    runs = AgentRun.objects.filter(thread=run.thread, agent_key=run.agent_key, requested_by=run.requested_by)
    runs = runs.filter(target=run.target)
    return runs.filter(version_id=run.version_id) if run.target == AgentRun.Target.VERSION else runs


def context_options(run_id: UUID) -> JSONObject:
    """Return the request context of a run, which a run that its results wake has too."""
    context = AgentRun.objects.filter(pk=run_id).values_list("input__requestContext", flat=True).first()
    return {"requestContext": context} if context else {}


def find_answering_agent(run: AgentRun) -> ResolvedAgent | None:
    """Return the agent that answers in the thread of a run, or None if nobody asked for the run or it was unsaved."""
    if run.requested_by is None or run.target == AgentRun.Target.UNSAVED:
        return None
    version_id = run.version_id if run.target == AgentRun.Target.VERSION else None
    status = "draft" if run.target == AgentRun.Target.DRAFT else "published"
    return stored_agents.get(run.agent_key, user=run.requested_by, version_id=version_id, status=status)


def result_signal(task: BackgroundTask) -> Signal:
    """Return the signal about the end of a task."""
    result = text_or_json(task.result)
    contents = result if task.status == BackgroundTask.Status.COMPLETED else task.error
    attributes = {"id": str(task.pk), "tool": task.tool, "status": str(task.status)}
    return Signal("background-task", contents, id=f"{SIGNAL_PREFIX}{task.pk}", attributes=attributes)


def deliver_to_run(run_id: UUID) -> int:
    """Append the results of a run that are due to its events, and return their number.

    While a process executes the run, only that process may append events: then they are delivered later.
    """
    with transaction.atomic():
        run = AgentRun.objects.select_for_update(of=("self",)).filter(pk=run_id).without_large_columns().first()
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


def note_woken_run(run: AgentRun) -> None:
    """Record the run that results have woken which came too late for the run that was active before."""
    ids = [*filter(None, map(task_of_signal, run.input[SIGNALS]))]
    if ids:
        own = BackgroundTaskDelivery.objects.filter(task__in=ids, task__thread=run.thread_id)
        own.update(woken_run_id=run.pk)


def task_of_signal(key: str) -> UUID | None:
    """Return the ID of the task whose end a signal reports, from the ID of the signal, or None for other signals."""
    return parse_uuid(key.removeprefix(SIGNAL_PREFIX)) if key.startswith(SIGNAL_PREFIX) else None
