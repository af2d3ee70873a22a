"""The continuation of suspended runs once all calls for which they wait are decided."""

from __future__ import annotations

from collections.abc import Iterable
from uuid import UUID

from django.db.models import F, Min, QuerySet
from django.db.models.functions import Now

from agentcms.db.after_commit import call_after_commit
from runs_app.approvals.approval_signals import announce_call, approval_decided
from runs_app.approvals.lookup import CHILD_RUN_ID, TASK_ID
from runs_app.engine.runners import get_runner
from runs_app.models import AgentRun, BackgroundTask, PendingCall
from runs_app.models.run import LEASE_DURATION


def continue_if_decided(run: AgentRun) -> bool:
    """Queue the next segment of a run if no call is left for which it waits. The caller has locked the row.

    The background task that waits with the run works again. Return False if the run still waits.
    """
    open_calls = PendingCall.objects.waiting().filter(run=run.pk, segment=run.segment)
    figures = open_calls.aggregate(first=Min("created_at"), expires_at=Min("expires_at"))
    suspended = AgentRun.objects.filter(pk=run.pk, status=AgentRun.Status.SUSPENDED)
    if figures["first"] is not None:
        # The reaper finds the run by this time, and the decided call may have been the one that expires first.
        suspended.update(expires_at=figures["expires_at"])
        return False
    # A run that is not durable has a short lease: it fails if the process that continues it stops before it begins.
    lease_until = None if run.is_durable else Now() + LEASE_DURATION
    suspended.update(
        status=AgentRun.Status.QUEUED,
        segment=F("segment") + 1,
        suspended_at=None,
        expires_at=None,
        holder="",
        attempts=0,
        lease_until=lease_until,
    )
    if run.parent_id is not None:
        tasks = BackgroundTask.objects.filter(child_run_id=run.pk, status=BackgroundTask.Status.SUSPENDED)
        tasks.update(status=BackgroundTask.Status.RUNNING, suspended_at=None)
    # Robust: the decision stays if the broker does not respond, and the reaper dispatches the run again.
    call_after_commit(dispatch_segment, run.pk, run.is_durable)
    return True


def settle_parent_call(child_id: UUID, parent_id: UUID) -> None:
    """Continue the parent of a child run that has ended, if the parent waits for it and for nothing else.

    The caller has locked the row of the child and saved its end.
    """
    parent = AgentRun.objects.select_for_update(of=("self",)).filter(pk=parent_id).without_large_columns().first()
    if parent is None or parent.status != AgentRun.Status.SUSPENDED:
        return
    calls = PendingCall.objects.waiting().filter(run=parent_id, segment=parent.segment, kind=PendingCall.Kind.CHILD)
    own = calls.filter(**{f"payload__{CHILD_RUN_ID}": str(child_id)})
    if own.update(state=PendingCall.State.RESUMED, decided_at=Now()):
        continue_if_decided(parent)


def settle_task_call(task_id: UUID, run_id: UUID) -> None:
    """Continue a run that waits for a background task, which has ended, and for nothing else.

    The caller has locked the row of the run and saved the end of the task.
    """
    run = AgentRun.objects.filter(pk=run_id, status=AgentRun.Status.SUSPENDED).without_large_columns().first()
    if run is None:
        return
    calls = PendingCall.objects.waiting().filter(run=run_id, segment=run.segment, kind=PendingCall.Kind.CHILD)
    if calls.filter(**{f"payload__{TASK_ID}": str(task_id)}).update(state=PendingCall.State.RESUMED, decided_at=Now()):
        continue_if_decided(run)


def cancel_calls(run_ids: Iterable[UUID]) -> None:
    """Cancel the waiting calls of runs that have ended, or that are about to be deleted. Notify after the commit."""
    calls = PendingCall.objects.waiting().filter(run__in=list(run_ids))
    announced_ids = [*calls.exclude(kind=PendingCall.Kind.CHILD).values_list("pk", flat=True)]
    cancel_unannounced_calls(calls)
    for call in PendingCall.objects.filter(pk__in=announced_ids):
        announce_call(approval_decided, call)


def cancel_unannounced_calls(calls: QuerySet[PendingCall]) -> None:
    """Cancel waiting calls without telling anybody."""
    calls.update(state=PendingCall.State.CANCELLED, decided_at=Now())


def release_deleted_runs(runs: Iterable[tuple[UUID, UUID | None]]) -> None:
    """Cancel the waiting calls of runs that are about to be deleted, and of the runs below them.

    `runs` are their IDs with those of their parents. A parent that waits for one of them and is not deleted continues.
    """
    parents = dict(runs)
    level = [*parents]
    while level:
        below = AgentRun.objects.unfinished().filter(parent__in=level).exclude(pk__in=[*parents])
        children = dict(below.values_list("pk", "parent_id"))
        parents |= children
        level = [*children]
    cancel_calls(parents)
    for run_id, parent_id in parents.items():
        if parent_id is not None and parent_id not in parents:
            settle_parent_call(run_id, parent_id)


def dispatch_segment(run_id: UUID, is_durable: bool) -> None:
    """Have a segment executed: anywhere if the run is durable, otherwise in this process."""
    if is_durable:
        get_runner().dispatch(run_id)
    else:
        get_runner().continue_here(run_id)
