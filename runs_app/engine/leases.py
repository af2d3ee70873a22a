"""Which process holds a run. A process that says nothing of its runs for a while has died, and they are given up."""

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

from runs_app.events.chunks import chunk, event_type
from runs_app.events.notifications import wakeups
from runs_app.models import AgentRun, RunEvent
from runs_app.models.run import LEASE

Status = AgentRun.Status

LOST = "The server that ran this was stopped or died. Run it again."
MOST_AT_ONCE = 200

run_ended = Signal()  # a run is over: `status`


def holder_name() -> str:
    """A name for this process that no other has had."""
    return f"{socket.gethostname()[:40]}:{os.getpid()}:{token_hex(4)}"


def claim(run_id: UUID, holder: str) -> AgentRun | None:
    """Begin a run that waits, or None where it is over or somebody else has begun it."""
    now = timezone.now()
    waiting = AgentRun.objects.filter(pk=run_id, status=Status.QUEUED)
    if not waiting.update(status=Status.RUNNING, holder=holder, started_at=now, lease_until=now + LEASE):
        return None
    return AgentRun.objects.get(pk=run_id)


def renew(holder: str, run_ids: Iterable[UUID]) -> set[UUID]:
    """Keep runs of a process; the ids of those that are still its own."""
    held = AgentRun.objects.filter(pk__in=list(run_ids), holder=holder, status__in=AgentRun.HELD)
    held.update(lease_until=timezone.now() + LEASE)
    return set(held.values_list("pk", flat=True))


def asked_to_stop(holder: str) -> list[UUID]:
    """The runs of a process that somebody wants stopped."""
    held = AgentRun.objects.filter(holder=holder, status__in=AgentRun.HELD, cancel_requested_at__isnull=False)
    return list(held.values_list("pk", flat=True))


def reap() -> int:
    """Give up the runs whose process has died; how many there were."""
    lost = list(AgentRun.objects.lost().order_by("pk").values_list("pk", flat=True)[:MOST_AT_ONCE])
    return sum(give_up(run_id) for run_id in lost)


def give_up(run_id: UUID) -> bool:
    """End a run whose process has died with an event that says so; False where it lives after all."""
    with transaction.atomic():
        run = AgentRun.objects.lost().select_for_update().filter(pk=run_id).first()
        if run is None:
            return False
        wanted = run.cancel_requested_at is not None
        end(run, status=Status.CANCELLED if wanted else Status.FAILED, error="" if wanted else LOST)
    wakeups.notify([run_id])
    return True


def end(run: AgentRun, *, status: str, error: str) -> None:
    """Write the last event of a run that nobody carries on; its row is locked, which fences who held it."""
    data = chunk("abort") if status == Status.CANCELLED else chunk("error", error={"name": "Error", "message": error})
    number = (run.events.aggregate(last=Max("number"))["last"] or 0) + 1
    RunEvent.objects.create(run=run, number=number, type=event_type(data["type"]), data=data)
    write_end(run.pk, last_event_number=number, status=status, error=error)


def write_end(run_id: UUID, *, status: str, **values: Any) -> None:
    """Write the columns of the end; who counts runs is told when it is committed."""
    transaction.on_commit(partial(run_ended.send, AgentRun, status=status))
    over = {"status": status, "finished_at": timezone.now(), "lease_until": None, "holder": ""}
    AgentRun.objects.filter(pk=run_id).update(**over, **values)
