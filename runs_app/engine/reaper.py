"""The reaper: a thread of every web process and worker that queues the durable runs of dead processes again."""

from __future__ import annotations

import logging
import os
import random
import threading
import time
from collections.abc import Callable
from datetime import timedelta
from uuid import UUID

from django.db import connection
from django.db.models.functions import Now

from runs_app.approvals.decisions import expire_calls
from runs_app.engine import leases
from runs_app.engine.runners import get_runner
from runs_app.models import AgentRun

log = logging.getLogger(__name__)

INTERVAL = 1.0  # seconds between two looks, on average
QUEUE_PATIENCE = timedelta(seconds=5)  # after which a queued run is dispatched again: its message may be lost
MAX_DISPATCHED = 20  # in one look

_lock = threading.Lock()
_thread: threading.Thread | None = None


def start(before_each_look: Callable[[], None] | None = None) -> None:
    """Start the thread, once per process."""
    global _thread
    with _lock:
        if _thread is None:
            _thread = threading.Thread(target=look_forever, args=[before_each_look], name="run-reaper", daemon=True)
            _thread.start()


def look_forever(before_each_look: Callable[[], None] | None) -> None:
    while True:
        time.sleep(INTERVAL * random.uniform(0.75, 1.25))  # noqa: S311  not all processes at once
        try:
            if before_each_look is not None:
                before_each_look()
            look_once()
        except Exception:  # the database may be away for a while
            log.warning("Lost runs could not be looked for.", exc_info=True)
        finally:
            connection.close()


def look_once() -> None:
    """Queue the durable runs whose processes have died, and dispatch those that no process has taken.

    Decline the calls that nobody decided in time.
    """
    for run in lost_runs():
        if leases.requeue_lost_run(run.pk, run.fence) and (run.parent_id is None or run.segment):
            get_runner().dispatch(run.pk)
    for child_id in orphan_ids():
        leases.cancel_queued(child_id)
    expire_calls()
    overdue = AgentRun.objects.queued().filter(leases.is_unattended(), created_at__lt=Now() - QUEUE_PATIENCE)
    for run_id in overdue.order_by("created_at").values_list("pk", flat=True)[:MAX_DISPATCHED]:
        get_runner().dispatch(run_id)


def recover(run: AgentRun) -> bool:
    """Dispatch a durable run that no process executes, without waiting for the next look.

    Return False if it needs nothing, or if no process has heard of it. The caller of a child run executes it.
    """
    if run.parent_id is not None or not run.is_durable:
        return False
    is_free = run.status == AgentRun.Status.QUEUED or any(
        leases.requeue_lost_run(lost.pk, lost.fence) for lost in lost_runs(run.pk)
    )
    return is_free and get_runner().dispatch(run.pk)


def lost_runs(run_id: UUID | None = None) -> list[AgentRun]:
    """Return the durable runs whose leases have expired or whose processes no longer exist: all, or only this one."""
    running = AgentRun.objects.leased().filter(status=AgentRun.Status.RUNNING, is_durable=True).order_by("pk")
    if run_id is not None:
        running = running.filter(pk=run_id)
    runs = running.only("fence", "holder", "parent_id", "segment")
    expired = list(runs.filter(lease_until__lt=Now()))
    of_this_machine = runs.filter(holder__startswith=f"{leases.host_name()}:", lease_until__gte=Now())
    return [*expired, *(run for run in of_this_machine if not is_alive(run.holder))]


def orphan_ids() -> list[UUID]:
    """Return the IDs of queued child runs that nobody will continue, because their parents have ended."""
    orphans = AgentRun.objects.queued().filter(parent__finished_at__isnull=False).order_by("pk")
    return list(orphans.values_list("pk", flat=True)[:MAX_DISPATCHED])


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
