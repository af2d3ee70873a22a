"""The ends of runs: those that were cancelled, lost by their process, or handed over to another one."""

from __future__ import annotations

import logging
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import F, Max, Q, QuerySet
from django.db.models.functions import Now
from django.dispatch import Signal
from django.utils import timezone

from agentcms.db.after_commit import call_after_commit
from agentcms.db.outages import logging_errors
from runs_app.approvals.resuming import cancel_calls, settle_parent_call
from runs_app.engine.runners import get_runner
from runs_app.events.notifications import notifier
from runs_app.events.stream_chunks import build_chunk, event_type
from runs_app.models import AgentRun, RunEvent
from runs_app.models.background_task import is_child_of_task
from runs_app.models.run import DURABLE_LEASE_DURATION, LEASE_DURATION

log = logging.getLogger(__name__)

LOST_PROCESS = "The server process of this run stopped"  # how the errors of such runs begin
LOST_MESSAGE = f"{LOST_PROCESS}. Run it again."
MAX_ENDED_RUNS = 200  # by one scheduled task
run_ended = Signal()  # sent with `status`, `run_id` and `parent_id` after the end is committed
run_ending = Signal()  # sent with `run_id`, `status` and `error` in the transaction that ends or suspends a first run
run_requeued = Signal()  # sent with `reason`, "lost" or "stopped", after a durable run is queued again


def lock_run(run_id: UUID, runs: QuerySet[AgentRun], *, skip_locked: bool = False) -> AgentRun | None:
    """Lock a run and its parent, and return the run if it is among `runs`. Otherwise return None.

    The end of a run changes its parent, too. Both are locked in the same order everywhere, so there is no deadlock.
    With `skip_locked`, also return None if another transaction has locked one of them.
    """
    parent = AgentRun.objects.filter(pk=run_id, parent__isnull=False).values("parent")
    both = AgentRun.objects.filter(Q(pk=run_id) | Q(pk__in=parent))
    locked = both.lock_in_order(skip_locked=skip_locked)
    if skip_locked and both.exclude(pk__in=locked).exists():
        return None
    return runs.filter(pk=run_id).first()


def end_lost_runs() -> int:
    """End runs with an expired lease that are not durable, and return their number.

    An unexpected error with one of them holds up no others.
    """
    shorten_leases()
    lost = AgentRun.objects.with_expired_lease().filter(is_durable=False)
    lost_ids = list(lost.order_by("pk").values_list("pk", flat=True)[:MAX_ENDED_RUNS])
    count = 0
    for run_id in lost_ids:
        with logging_errors(log, "Run %s is lost and could not be ended.", run_id):
            count += end_lost_run(run_id)
    return count


@transaction.atomic
def shorten_leases() -> None:
    """Let leases end in time that began before the clock was set back. Processes that live renew them meanwhile."""
    too_long = AgentRun.objects.leased().filter(lease_until__gt=Now() + 2 * LEASE_DURATION)
    locked = too_long.lock_in_order(skip_locked=True)
    if locked:
        AgentRun.objects.filter(pk__in=locked).update(lease_until=Now() + LEASE_DURATION)


def end_lost_run(run_id: UUID) -> bool:
    """End a run with an expired lease. Return False if the lease was renewed meanwhile, or for a durable run."""
    with transaction.atomic():
        run = lock_run(run_id, AgentRun.objects.with_expired_lease().filter(is_durable=False))
        if run is None:
            return False
        if run.cancel_requested_at is not None:
            record_end(run, status=AgentRun.Status.CANCELLED, error="")
        else:
            record_end(run, status=AgentRun.Status.FAILED, error=LOST_MESSAGE)
    notifier.notify({run_id: True})
    return True


def requeue_lost_run(run_id: UUID, fence: int, *, is_dead: bool = True, skip_locked: bool = False) -> bool:
    """Queue a durable run whose process has died or lost its lease. Return False if another process was faster.

    `fence` is the claim of this process. If it `is_dead`, that counts as an attempt: a step may have ended it. A run
    that a user has cancelled is ended. With `skip_locked`, return False for a run that is locked just now.
    """
    with transaction.atomic():
        lost = AgentRun.objects.leased().filter(pk=run_id, fence=fence, status=AgentRun.Status.RUNNING)
        run = lock_run(run_id, lost, skip_locked=skip_locked)
        if run is None:
            return False
        if run.cancel_requested_at is not None:
            record_end(run, status=AgentRun.Status.CANCELLED, error="")
        else:
            columns = {"attempts": F("attempts") + int(is_dead), "worked_ms": F("worked_ms") + lost_work_ms(run)}
            lost.update(status=AgentRun.Status.QUEUED, holder="", lease_until=None, **columns)
            call_after_commit(run_requeued.send, AgentRun, reason="lost")
    notifier.notify({run_id: run.cancel_requested_at is not None})
    return run.cancel_requested_at is None


def lost_work_ms(run: AgentRun) -> int:
    """Return for how long the dead process of a run has worked on it, as far as its lease shows."""
    claim = run.claims.order_by("-pk").first()
    began_at = claim.claimed_at if claim is not None else run.started_at
    if began_at is None or run.lease_until is None:
        return 0
    renewed_at = run.lease_until - DURABLE_LEASE_DURATION
    return max(0, int((renewed_at - began_at).total_seconds() * 1000))


def cancel_queued(run_id: UUID) -> bool:
    """End a durable run that waits for a process. Return False if a process has claimed it."""
    with transaction.atomic():
        run = lock_run(run_id, AgentRun.objects.queued())
        if run is None:
            return False
        record_end(run, status=AgentRun.Status.CANCELLED, error="")
    notifier.notify({run_id: True})
    return True


def end_waiting(run: AgentRun) -> None:
    """Save the end of a cancelled run that waits for people or for a process. The caller has locked the row."""
    cancel_calls([run.pk])
    record_end(run, status=AgentRun.Status.CANCELLED, error="")


def cancel_run(run_id: UUID) -> bool:
    """End a run that waits and return True, or ask its process to cancel it. A finished run stays unchanged."""
    with transaction.atomic():
        # One lock for all states: a decision or a claim in between would leave the run without the request.
        run = lock_run(run_id, AgentRun.objects.unfinished())
        if run is None:
            return False
        is_queued = run.status == AgentRun.Status.QUEUED and run.is_durable
        if is_waiting := is_queued or run.status == AgentRun.Status.SUSPENDED:
            end_waiting(run)
        elif run.cancel_requested_at is None:
            AgentRun.objects.filter(pk=run_id).update(cancel_requested_at=timezone.now())
    if is_waiting:
        notifier.notify({run_id: True})
    else:
        get_runner().stop(run_id)
    return is_waiting


def cancel_children(run_id: UUID) -> None:
    """Cancel the unfinished child runs of a run that has failed or was cancelled, but not those of its tasks."""
    children = AgentRun.objects.unfinished().filter(~is_child_of_task(), parent=run_id)
    for child_id in list(children.values_list("pk", flat=True)):
        cancel_run(child_id)


def cancel_abandoned_children() -> None:
    """Cancel child runs that wait for people, or that a process executes, while their parents have ended.

    The parent cancels them after its end is committed. They remain if its process dies in between. An unexpected error
    with one of them holds up no others.
    """
    waiting = AgentRun.objects.suspended()
    executed = AgentRun.objects.leased().filter(status=AgentRun.Status.RUNNING, cancel_requested_at=None)
    for runs in (waiting, executed):
        abandoned = runs.filter(~is_child_of_task(), parent__finished_at__isnull=False)
        # Not by the primary key: SQLite would read all runs in its order, not the few of the index.
        for child_id in list(abandoned.order_by("created_at").values_list("pk", flat=True)[:MAX_ENDED_RUNS]):
            with logging_errors(log, "Run %s no longer has a parent and could not be cancelled.", child_id):
                cancel_run(child_id)


def save_hand_over(run_id: UUID, *, status: str, worked_ms: int, **values: Any) -> None:
    """Queue a durable run of this process, whose row the caller has locked."""
    call_after_commit(run_requeued.send, AgentRun, reason="stopped")
    columns = {"status": status, "holder": "", "lease_until": None, "worked_ms": F("worked_ms") + worked_ms}
    AgentRun.objects.filter(pk=run_id).update(**columns, **values)


def cancel_unstarted(run: AgentRun) -> None:
    """End a run that nobody will execute, unless another process has claimed or ended it since it was read."""
    unchanged = AgentRun.objects.leased().filter(pk=run.pk, holder=run.holder, fence=run.fence)
    with transaction.atomic():
        if lock_run(run.pk, unchanged) is None:
            return
        record_end(run, status=AgentRun.Status.CANCELLED, error="")
    notifier.notify({run.pk: True})


def record_end(run: AgentRun, *, status: str, error: str) -> None:
    """Append the last event of a run that no process executes, and save its end. The caller has locked the row."""
    if status == AgentRun.Status.CANCELLED:
        data = build_chunk("abort")
    else:
        data = build_chunk("error", error={"name": "Error", "message": error})
    # Not the column of the run: a process that died has not written it since its last segment.
    number = (run.events.aggregate(last=Max("number"))["last"] or 0) + 1
    RunEvent.objects.create(run=run, number=number, type=event_type(data["type"]), data=data)
    save_end_columns(run.pk, run.parent_id, last_event_number=number, status=status, error=error)


def save_end_columns(
    run_id: UUID, parent_id: UUID | None, *, status: str, has_thread: bool = True, **values: Any
) -> None:
    """Save the columns of a finished run and send `run_ended` after the commit.

    A parent that waits for it continues. Its own unfinished child runs are cancelled unless it has succeeded.
    """
    # A scheduled task does what an error leaves, by `maintain_tasks` and `cancel_abandoned_children`.
    call_after_commit(run_ended.send, AgentRun, status=status, run_id=run_id, parent_id=parent_id)
    if status != AgentRun.Status.SUCCEEDED:
        call_after_commit(cancel_children, run_id)
    columns = {"status": status, "finished_at": timezone.now(), "lease_until": None, "holder": ""}
    not_waiting = {"suspended_at": None, "expires_at": None}
    AgentRun.objects.filter(pk=run_id).update(**columns, **not_waiting, **values)
    if parent_id is not None:
        settle_parent_call(run_id, parent_id)
    elif has_thread:
        run_ending.send(AgentRun, run_id=run_id, status=status, error=values.get("error", ""))
