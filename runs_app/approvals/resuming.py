"""The continuation of suspended runs once all calls for which they wait are decided."""

from __future__ import annotations

from functools import partial
from uuid import UUID

from django.db import transaction
from django.db.models import F, Min
from django.utils import timezone

from runs_app.engine.runners import get_runner
from runs_app.models import AgentRun, PendingCall
from runs_app.models.run import LEASE_DURATION


def continue_if_decided(run: AgentRun) -> bool:
    """Queue the next segment of a run if no call is left for which it waits. The caller has locked the row.

    Return False if the run still waits.
    """
    open_calls = PendingCall.objects.waiting().filter(run=run.pk, segment=run.segment)
    figures = open_calls.aggregate(first=Min("created_at"), expires_at=Min("expires_at"))
    suspended = AgentRun.objects.filter(pk=run.pk, status=AgentRun.Status.SUSPENDED)
    if figures["first"] is not None:
        suspended.update(expires_at=figures["expires_at"])
        return False
    # A run that is not durable has a short lease: it fails if the process that continues it stops before it begins.
    lease_until = None if run.is_durable else timezone.now() + LEASE_DURATION
    suspended.update(
        status=AgentRun.Status.QUEUED,
        segment=F("segment") + 1,
        suspended_at=None,
        expires_at=None,
        holder="",
        attempts=0,
        lease_until=lease_until,
    )
    transaction.on_commit(partial(dispatch_segment, run.pk, run.is_durable))
    return True


def dispatch_segment(run_id: UUID, is_durable: bool) -> None:
    """Have a segment executed: anywhere if the run is durable, otherwise in this process."""
    if is_durable:
        get_runner().dispatch(run_id)
    else:
        get_runner().continue_here(run_id)
