"""Saving what the writer has gathered: the events, steps and ends of runs that its process still owns."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from uuid import UUID

from django.db import transaction

from agentcms.db.outages import OUTAGE_ERRORS
from runs_app.approvals import suspending
from runs_app.engine import run_ends
from runs_app.events.pending_runs import RunEnd, WriteSnapshot
from runs_app.events.stream_chunks import event_type
from runs_app.frequent_queries import locked_runs_of_holder
from runs_app.models import AgentRun, RunEvent, RunStep
from runs_app.scoring import AnswerToScore, create_scoring_jobs

log = logging.getLogger(__name__)

STEP_COLUMNS = ("state", "mark", "attempts", "result", "started_at", "finished_at")  # that a later state changes


def save_snapshots(snapshots: Mapping[UUID, WriteSnapshot], holder: str, *, may_be_saved: bool = False) -> set[UUID]:
    """Save events, steps and ends in a transaction of the caller. Return the runs that this process still owns.

    With `may_be_saved`, an earlier try lost its connection, so it is not known whether its transaction was committed.
    """
    lock_with_parents(snapshots)
    # The lock fences other processes: only the holder of a row may append events, and only with its last claim.
    locked = locked_runs_of_holder(ids=list(snapshots), holder=holder)
    thread_ids = {run_id: thread_id for run_id, fence, thread_id in locked if fence == snapshots[run_id].fence}
    owned = set(thread_ids)
    events = [
        RunEvent(run_id=run_id, number=number, type=event_type(data["type"]), data=data, created_at=at)
        for run_id in owned
        for number, (data, at) in enumerate(snapshots[run_id].chunks, snapshots[run_id].number + 1)
    ]
    RunEvent.objects.bulk_create(events, ignore_conflicts=may_be_saved)
    save_steps({run_id: snapshots[run_id] for run_id in owned})
    # The end of a child run locks its parent, and that of a first run its thread: runs first, threads in order.
    for run_id in sorted(owned, key=lambda key: (snapshots[key].parent_id is None, thread_ids[key] or 0)):
        save_end(run_id, snapshots[run_id], has_thread=thread_ids[run_id] is not None)
    save_scoring_jobs(snapshots[run_id].end for run_id in owned)
    return owned | ended_runs(snapshots) if may_be_saved else owned


def lock_with_parents(snapshots: Mapping[UUID, WriteSnapshot]) -> None:
    """Lock runs together with the parents of those that end, and with all runs above those that begin to wait."""
    ending = [snapshot for snapshot in snapshots.values() if snapshot.end and snapshot.parent_id]
    parents = {snapshot.parent_id for snapshot in ending}
    if parents:
        waiting = {snapshot.parent_id for snapshot in ending if snapshot.parent_id and is_suspension(snapshot)}
        AgentRun.objects.filter(pk__in={*snapshots, *parents, *runs_above(waiting)}).lock_in_order()


def is_suspension(snapshot: WriteSnapshot) -> bool:
    return snapshot.end is not None and snapshot.end["status"] == AgentRun.Status.SUSPENDED


def runs_above(run_ids: set[UUID]) -> set[UUID]:
    """Return the IDs of all runs above these."""
    above: set[UUID] = set()
    while run_ids:
        parents = AgentRun.objects.filter(pk__in=run_ids).values_list("parent_id", flat=True)
        run_ids = {parent_id for parent_id in parents if parent_id is not None}
        above |= run_ids
    return above


def ended_runs(snapshots: Mapping[UUID, WriteSnapshot]) -> set[UUID]:
    """Return the runs of which the ends of these snapshots are stored. They no longer belong to a process."""
    rows = AgentRun.objects.filter(pk__in=[run_id for run_id, snapshot in snapshots.items() if snapshot.end])
    return {
        run_id
        for run_id, fence, status, number in rows.values_list("pk", "fence", "status", "last_event_number")
        if (snapshot := snapshots[run_id]).end is not None
        and (fence, status) == (snapshot.fence, snapshot.end["status"])
        and number == snapshot.number + len(snapshot.chunks)
    }


def save_steps(snapshots: Mapping[UUID, WriteSnapshot]) -> None:
    """Insert the steps of these runs, or update those that have a row."""
    steps = [step for snapshot in snapshots.values() for step in snapshot.steps]
    if steps:
        RunStep.objects.bulk_create(
            steps, update_conflicts=True, unique_fields=["run", "key"], update_fields=STEP_COLUMNS
        )
    reset_attempts(run_id for run_id, snapshot in snapshots.items() if snapshot.resets_attempts)


def reset_attempts(run_ids: Iterable[UUID]) -> None:
    """Forget the lost processes of runs that go on, and those of the runs above: their calls go on too."""
    while ids := {*run_ids}:
        AgentRun.objects.filter(pk__in=ids).update(attempts=0)
        parents = AgentRun.objects.leased().filter(children__in=ids, attempts__gt=0)
        run_ids = parents.values_list("pk", flat=True)


def save_end(run_id: UUID, snapshot: WriteSnapshot, *, has_thread: bool) -> None:
    """Save the end of a run, suspend it or hand it over, if that is what the snapshot has."""
    if snapshot.end is None:
        return
    last_number = snapshot.number + len(snapshot.chunks)
    if snapshot.end["status"] == AgentRun.Status.QUEUED:
        run_ends.save_hand_over(run_id, **snapshot.end)
    elif snapshot.end["status"] == AgentRun.Status.SUSPENDED:
        suspending.save_suspension(run_id, last_event_number=last_number, **snapshot.end)
    else:
        columns: RunEnd = {**snapshot.end}
        columns.pop("scoring", None)
        run_ends.save_end_columns(
            run_id, snapshot.parent_id, has_thread=has_thread, last_event_number=last_number, **columns
        )


def save_scoring_jobs(ends: Iterable[RunEnd | None]) -> None:
    """Create the jobs that score these answers. Their runs end, even if something is wrong with a scorer."""
    answers = [end["scoring"] for end in ends if end is not None and "scoring" in end]
    answers.sort(key=lambda answer: answer.agent_id or "")
    # All at once needs fewer queries. One after the other, a wrong scorer costs only the scores of its own answer.
    if answers and not try_scoring_jobs(answers) and len(answers) > 1:
        for answer in answers:
            try_scoring_jobs([answer])


def try_scoring_jobs(answers: Sequence[AnswerToScore]) -> bool:
    """Create the jobs of all answers and return True, or of none and return False."""
    try:
        with transaction.atomic():
            create_scoring_jobs(answers)
    except OUTAGE_ERRORS:
        raise
    except Exception:
        if len(answers) == 1:
            log.exception("The answer of run %s will not be scored.", answers[0].run_id)
        return False
    return True
