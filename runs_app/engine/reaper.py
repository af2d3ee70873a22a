"""The reaper: a thread of every web process and worker that queues the durable runs of dead processes again.

It also declines calls that waited too long for a person.
"""

from __future__ import annotations

import logging
import os
import random
import threading
import time
from collections.abc import Callable
from datetime import datetime, timedelta
from uuid import UUID

from django.db import connection
from django.db.models import Case, Q, QuerySet, When
from django.db.models.functions import Now

from agentcms.db.outages import logging_errors
from agentcms.db.statements.compiled_query import compiled_query
from runs_app.approvals.expiry import expire_calls
from runs_app.engine import leases, run_ends, workers
from runs_app.engine.engine import find_engine
from runs_app.engine.runners import get_runner
from runs_app.models import AgentRun
from runs_app.models.background_task import is_child_of_task

log = logging.getLogger(__name__)

INTERVAL = 1.0  # seconds between two rounds, on average
REDISPATCH_DELAY = timedelta(seconds=5)  # after which a queued run is dispatched again: its message may be lost
MAX_DISPATCHED_RUNS = 20  # in one round

_lock = threading.Lock()
_thread: threading.Thread | None = None


def start_reaper(before_each_round: Callable[[], None] | None = None) -> None:
    """Start the thread, once per process."""
    global _thread
    with _lock:
        if _thread is None:
            _thread = threading.Thread(target=reap_forever, args=[before_each_round], name="run-reaper", daemon=True)
            _thread.start()


def reap_forever(before_each_round: Callable[[], None] | None) -> None:
    while True:
        time.sleep(INTERVAL * random.uniform(0.75, 1.25))  # noqa: S311  not all processes at once
        try:
            if before_each_round is not None:
                before_each_round()
            reap_once()
        except Exception:  # the database may be away for a while
            log.warning("The search for lost runs failed.", exc_info=True)
        finally:
            connection.close()


def reap_once() -> None:
    """Queue the durable runs whose processes have died, and dispatch those that no process has taken.

    Decline the calls that nobody decided in time. An unexpected error with one run holds up no others.
    """
    for run in lost_runs():
        with logging_errors(log, "Run %s is lost and could not be queued.", run.pk):
            queue_again(run)
    for run_id, parent_end in untaken_runs():
        with logging_errors(log, "Run %s is queued and could not be dispatched.", run_id):
            if parent_end is not None:  # nobody will continue it
                run_ends.cancel_queued(run_id)
            else:
                dispatch_again(run_id)
    expire_calls()


def dispatch_again(run_id: UUID) -> None:
    """Take a queued run if this process executes runs, or else dispatch it unless workers do so.

    Another message might be lost as well, or wait for a thread of a worker whose jobs take long. While all workers are
    full, each round of each process would send further ones.
    """
    engine = find_engine()
    if engine is not None and engine.takes_queued:
        engine.offer(run_id)
    elif not workers.is_any_alive():
        get_runner().dispatch(run_id)


def queue_again(run: AgentRun) -> None:
    """Queue a lost run, and dispatch it unless the process of its parent claims it."""
    # A process that stands still in a transaction keeps the locks of its runs. The others do not wait for it.
    is_queued = run_ends.requeue_lost_run(run.pk, run.fence, skip_locked=True)
    # A child run that has not waited for people is claimed by the process of its parent.
    if is_queued and (run.parent_id is None or run.segment):
        get_runner().dispatch(run.pk)


def recover_run(run: AgentRun) -> bool:
    """Dispatch a durable run that no process executes, without waiting for the next round.

    Return False if it needs nothing, or if no process was notified of it. The caller of a child run executes it.
    """
    if run.parent_id is not None or not run.is_durable:
        return False
    is_free = run.status == AgentRun.Status.QUEUED or any(
        run_ends.requeue_lost_run(lost.pk, lost.fence) for lost in lost_runs(run.pk)
    )
    return is_free and get_runner().dispatch(run.pk)


def lost_runs(run_id: UUID | None = None) -> list[AgentRun]:
    """Return the durable runs whose leases have expired or whose processes no longer exist: all, or only this one."""
    runs = [run for run in possibly_lost_runs(leases.host_name()) if run_id in (None, run.pk)]
    return [run for run in runs if vars(run)["has_expired"] or not is_alive(run.holder)]


# Compiled: each process runs it once a second.
@compiled_query
def possibly_lost_runs(host: str) -> QuerySet[AgentRun]:
    """Return the durable runs with expired leases, and those of this machine, whose processes can be looked for."""
    is_expired = Q(lease_until__lt=Now())
    runs = AgentRun.objects.leased().filter(status=AgentRun.Status.RUNNING, is_durable=True)
    runs = runs.filter(is_expired | Q(holder__startswith=f"{host}:"))
    runs = runs.annotate(has_expired=Case(When(is_expired, then=True), default=False))
    return runs.order_by("pk").only("fence", "holder", "parent_id", "segment")


@compiled_query
def untaken_runs() -> QuerySet[AgentRun, tuple[UUID, datetime | None]]:
    """Return the IDs of queued runs that no process has taken, and of queued child runs whose parent has ended.

    The oldest come first. The second value is the time at which the parent has ended. Child runs of background tasks
    outlive their parents.
    """
    # One of a later time was created by a process whose clock is ahead, or before that of the database was set back.
    has_waited = Q(created_at__lt=Now() - REDISPATCH_DELAY) | Q(created_at__gt=Now() + REDISPATCH_DELAY)
    is_overdue = leases.is_unattended() & has_waited
    is_abandoned = Q(parent__finished_at__isnull=False) & ~is_child_of_task()
    runs = (
        AgentRun.objects.queued()
        .filter(is_overdue | is_abandoned)
        .annotate(abandoned_at=Case(When(is_abandoned, then="parent__finished_at")))
    )
    return runs.order_by("created_at").values_list("pk", "abandoned_at")[:MAX_DISPATCHED_RUNS]


def is_alive(holder: str) -> bool:
    """Return whether the process with this name exists. Assume it of a process of another machine."""
    host, process_id, _ = holder.rsplit(":", 2)
    if host != leases.host_name():
        return True
    try:
        os.kill(int(process_id), 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
