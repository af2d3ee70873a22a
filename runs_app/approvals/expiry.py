"""The expiry of calls that wait for people: nobody may decide them any more."""

from __future__ import annotations

import logging
from uuid import UUID

from django.db import transaction
from django.db.models import QuerySet
from django.db.models.functions import Now

from agentcms.db.outages import logging_errors
from agentcms.db.statements.compiled_query import compiled_query
from agentcms.plural import pluralize
from runs_app.approvals.approval_signals import announce_call, approval_decided
from runs_app.approvals.resuming import continue_if_decided
from runs_app.models import AgentRun, PendingCall

log = logging.getLogger(__name__)

MAX_EXPIRED_RUNS = 50  # in one round of the reaper


def has_expired(call: PendingCall) -> bool:
    """Return whether nobody may decide a call any more. The clock of the database decides."""
    return call.expires_at is not None and PendingCall.objects.filter(pk=call.pk, expires_at__lte=Now()).exists()


def expire_calls() -> int:
    """Decline the calls that nobody decided in time, and return their number. The reaper calls this.

    An unexpected error with the calls of one run holds up no others.
    """
    count = 0
    for run_id in runs_with_expired_calls():
        with logging_errors(log, "The expired calls of run %s could not be declined.", run_id):
            count += expire_calls_of(run_id)
    return count


@compiled_query
def runs_with_expired_calls() -> QuerySet[AgentRun, UUID]:
    due = AgentRun.objects.filter(suspended_at__isnull=False, expires_at__lte=Now())
    return due.order_by("expires_at").values_list("pk", flat=True)[:MAX_EXPIRED_RUNS]


def expire_calls_of(run_id: UUID) -> int:
    """Decline the calls of a run that nobody decided in time, and return their number."""
    with transaction.atomic():
        # A locked run is being decided or ended just now. The reaper tries again in a second.
        runs = AgentRun.objects.select_for_update(of=("self",), skip_locked=True).without_large_columns()
        run = runs.filter(pk=run_id).first()
        if run is None or run.status != AgentRun.Status.SUSPENDED:
            return 0
        calls = [*PendingCall.objects.waiting().filter(run=run_id, segment=run.segment, expires_at__lte=Now())]
        for call in calls:
            reason = expiry_reason(call)
            columns = {
                "state": PendingCall.State.EXPIRED,
                "decided_at": Now(),
                "via": PendingCall.Via.EXPIRY,
                "reason": reason,
            }
            PendingCall.objects.waiting().filter(pk=call.pk).update(**columns)
            call.refresh_from_db()
            announce_call(approval_decided, call)
        continue_if_decided(run)
    return len(calls)


def expiry_reason(call: PendingCall) -> str:
    """Return the reason of an expired call, which the model reads. The time in it is exact."""
    seconds = round((call.expires_at - call.created_at).total_seconds()) if call.expires_at else 0
    units = (("day", 86400), ("hour", 3600), ("minute", 60), ("second", 1))
    name, length = next((name, length) for name, length in units if seconds % length == 0)
    return f"Nobody decided within {pluralize(seconds // length, name)}."
