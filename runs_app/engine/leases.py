"""Leases of runs. A run belongs to one process, which renews the lease; a run with an expired lease is ended."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterable
from functools import partial
from secrets import token_hex
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import Max
from django.dispatch import Signal
from django.utils import timezone

from runs_app.events.chunks import build_chunk, event_type
from runs_app.events.notifications import notifier
from runs_app.models import AgentRun, RunEvent
from runs_app.models.run import LEASE_DURATION

Status = AgentRun.Status

LOST_MESSAGE = "The server process of this run stopped. Run it again."
MAX_LOST_RUNS = 200  # ended by one task

run_ended = Signal()  # sent with `status` after the end is committed


def new_holder_name() -> str:
    """Return a unique name for this process."""
    return f"{socket.gethostname()[:40]}:{os.getpid()}:{token_hex(4)}"


def start_columns(holder: str) -> dict[str, Any]:
    """Return the columns of a run that a process starts now."""
    now = timezone.now()
    lease_until = now + LEASE_DURATION
    return {
        "status": Status.RUNNING,
        "created_at": now,
        "started_at": now,
        "lease_until": lease_until,
        "holder": holder,
    }


def renew(holder: str, run_ids: Iterable[UUID]) -> set[UUID]:
    """Renew the leases of a process. Return the ids of the runs that still belong to it."""
    leased = AgentRun.objects.leased().filter(pk__in=list(run_ids), holder=holder)
    leased.update(lease_until=timezone.now() + LEASE_DURATION)
    return set(leased.values_list("pk", flat=True))


def cancel_requested_ids(holder: str) -> list[UUID]:
    """Return the ids of the runs of a process that users have cancelled."""
    leased = AgentRun.objects.leased().filter(holder=holder, cancel_requested_at__isnull=False)
    return list(leased.order_by().values_list("pk", flat=True))


def end_lost_runs() -> int:
    """End runs with an expired lease and return their number."""
    lost_ids = list(AgentRun.objects.with_expired_lease().order_by("pk").values_list("pk", flat=True)[:MAX_LOST_RUNS])
    return sum(end_lost_run(run_id) for run_id in lost_ids)


def end_lost_run(run_id: UUID) -> bool:
    """End a run with an expired lease. Return False if the lease was renewed meanwhile."""
    with transaction.atomic():
        run = AgentRun.objects.with_expired_lease().select_for_update().filter(pk=run_id).first()
        if run is None:
            return False
        if run.cancel_requested_at is not None:
            record_end(run, status=Status.CANCELLED, error="")
        else:
            record_end(run, status=Status.FAILED, error=LOST_MESSAGE)
    notifier.notify({run_id: True})
    return True


def cancel_unstarted(run: AgentRun) -> None:
    """End a run that this process created and never executed."""
    with transaction.atomic():
        record_end(run, status=Status.CANCELLED, error="")
    notifier.notify({run.pk: True})


def record_end(run: AgentRun, *, status: str, error: str) -> None:
    """Append the last event of a run that no process executes, and save its end. The caller has locked the row."""
    if status == Status.CANCELLED:
        data = build_chunk("abort")
    else:
        data = build_chunk("error", error={"name": "Error", "message": error})
    number = (run.events.aggregate(last=Max("number"))["last"] or 0) + 1
    RunEvent.objects.create(run=run, number=number, type=event_type(data["type"]), data=data)
    save_end_columns(run.pk, last_event_number=number, status=status, error=error)


def save_end_columns(run_id: UUID, *, status: str, **values: Any) -> None:
    """Save the columns of a finished run and send `run_ended` after the commit."""
    transaction.on_commit(partial(run_ended.send, AgentRun, status=status))
    columns = {"status": status, "finished_at": timezone.now(), "lease_until": None, "holder": ""}
    AgentRun.objects.filter(pk=run_id).update(**columns, **values)
