"""Leases of runs. A run belongs to one process, which renews the lease.

When the lease expires, the run is ended. A durable run is queued instead, and another process claims it.
"""

from __future__ import annotations

import hashlib
import os
import socket
from collections.abc import Collection, Iterable
from contextlib import suppress
from functools import cache
from pathlib import Path
from secrets import token_hex
from uuid import UUID

from django.db import transaction
from django.db.models import Case, F, Max, Q, When
from django.db.models.functions import Coalesce, Now
from django.utils import timezone

from agentcms.db.column_values import ColumnValues
from runs_app.engine.run_ends import requeue_lost_run
from runs_app.models import AgentRun, RunClaim
from runs_app.models.run import DURABLE_LEASE_DURATION, LEASE_DURATION

Status = AgentRun.Status


def new_holder_name() -> str:
    """Return a unique name for this process."""
    return f"{host_name()}:{os.getpid()}:{token_hex(4)}"


@cache
def host_name() -> str:
    """Return a name of this machine, or of this container, in which a process ID means one process."""
    identity = [socket.gethostname()]
    with suppress(OSError):
        identity += [Path("/proc/sys/kernel/random/boot_id").read_text(), str(os.stat("/proc/self/ns/pid").st_ino)]
    digest = hashlib.sha256("\n".join(identity).encode()).hexdigest()[:8]
    return f"{identity[0][:30].replace(':', '-')}-{digest}"


def start_columns(holder: str) -> ColumnValues:
    """Return the columns of a run that a process starts now."""
    now = timezone.now()
    # The clock of the database, because those of two machines may differ by more than a lease.
    lease_until = Now() + LEASE_DURATION
    return {
        "status": Status.RUNNING,
        "created_at": now,
        "started_at": now,
        "lease_until": lease_until,
        "holder": holder,
    }


def queue_columns() -> ColumnValues:
    """Return the columns of a durable run that waits for a process."""
    return {"status": Status.QUEUED, "is_durable": True}


def claim_columns(holder: str) -> ColumnValues:
    """Return the columns of a durable run that a process creates and executes itself."""
    lease_until = Now() + DURABLE_LEASE_DURATION
    return {**start_columns(holder), "is_durable": True, "fence": 1, "lease_until": lease_until}


def claim(run_id: UUID, holder: str) -> AgentRun | None:
    """Give a run to this process. Return None if it is finished or belongs to a living process.

    The run is durable, or it is not and begins its next segment.
    """
    if claim_queued(run_id, holder):
        return get_claimed(run_id, holder)
    # Its process may have died, and no reaper has queued it yet.
    lost = AgentRun.objects.with_expired_lease().filter(pk=run_id, status=Status.RUNNING, is_durable=True)
    fence = lost.values_list("fence", flat=True).first()
    if fence is None or not (requeue_lost_run(run_id, fence) and claim_queued(run_id, holder)):
        return None
    return get_claimed(run_id, holder)


def claim_queued(run_id: UUID, holder: str) -> bool:
    """Give a queued run to this process. Return False if another one has it, or if it is not queued."""
    queued = AgentRun.objects.leased().filter(pk=run_id, status=Status.QUEUED)
    columns = {"holder": holder, "lease_until": Now() + DURABLE_LEASE_DURATION, "fence": F("fence") + 1}
    started_at = Coalesce("started_at", Now())
    return bool(queued.update(status=Status.RUNNING, started_at=started_at, **columns))


def is_executed(run_id: UUID) -> bool:
    """Return whether a process holds a run, or held it when it died."""
    return AgentRun.objects.leased().filter(pk=run_id, status=Status.RUNNING).exists()


def get_claimed(run_id: UUID, holder: str) -> AgentRun | None:
    """Return a run of this process with its configuration and the number of its last event.

    Return None if it has been lost meanwhile. The time line of the run shows the processes that continued it.
    """
    run = AgentRun.objects.filter(pk=run_id, holder=holder, status=Status.RUNNING).first()
    if run is not None and (run.fence > 1 or run.segment):
        # The column is only written with the end of the run or of a segment.
        run.last_event_number = run.events.aggregate(last=Max("number"))["last"] or 0
        RunClaim.objects.create(run=run, segment=run.segment, holder=holder, claimed_at=Now())
    if run is not None:
        run.read_configuration()  # the event loop must not
    return run


def is_unattended() -> Q:
    """Return the condition of runs that no parent executes: first runs, and child runs that waited for people."""
    return Q(parent=None) | Q(segment__gt=0)


def claim_oldest(holder: str, excluded: Collection[UUID]) -> AgentRun | None:
    """Give the oldest queued run but these to this process, or return None if none is queued."""
    queued = AgentRun.objects.queued().filter(is_unattended()).exclude(pk__in=excluded)
    while True:
        with transaction.atomic():
            oldest = queued.order_by("created_at")
            run_id = oldest.select_for_update(skip_locked=True, of=("self",)).values_list("pk", flat=True).first()
            run = claim(run_id, holder) if run_id is not None else None
        if run is not None or run_id is None:
            return run


def renew(holder: str, run_ids: Iterable[UUID]) -> dict[UUID, int]:
    """Renew the leases of a process. Return the runs that still belong to it, with their fences."""
    leased = AgentRun.objects.leased().filter(pk__in=list(run_ids), holder=holder)
    durable_end, usual_end = Now() + DURABLE_LEASE_DURATION, Now() + LEASE_DURATION
    with transaction.atomic():
        # The rows of a bare update are locked in any order.
        owned = dict(leased.order_by("pk").select_for_update(of=("self",)).values_list("pk", "fence"))
        renewed = AgentRun.objects.filter(pk__in=owned)
        renewed.update(lease_until=Case(When(is_durable=True, then=durable_end), default=usual_end))
    return owned
