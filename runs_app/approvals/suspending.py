"""Suspension of a run: the rows of the calls for which it waits, and the events that report them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple
from uuid import UUID

from django.conf import settings
from django.db.models import F, Max
from django.db.models.functions import Now
from django.utils import timezone

from agentcms.db.column_values import ColumnValues
from agentcms.wire.canonical import canonical, sha256_hex
from agentcms.wire.json_types import JSONMapping, JSONObject
from runs_app.approvals.approval_signals import announce_call, approval_requested
from runs_app.approvals.lookup import ReachableCall, background_task_id, child_run_id, waiting_calls_below
from runs_app.approvals.resuming import cancel_unannounced_calls, continue_if_decided
from runs_app.background.child_waits import suspend_task_of_child
from runs_app.background.stream_chunks import started_chunk
from runs_app.engine import run_ends
from runs_app.events.decided_calls import waiting_chunk
from runs_app.events.stream_chunks import SUSPENDED_TYPE, StreamChunk, build_chunk, event_type
from runs_app.models import AgentRun, BackgroundTask, PendingCall, RunEvent
from runs_app.models.pending_call import stored_call_id
from runs_app.runs_of_resources import digest_of_run


def call_mark(tool: str, arguments: object) -> str:
    """Return a hash of a tool and its arguments, by which readers recognize a call that has changed."""
    return sha256_hex(canonical([tool, arguments]))[:16]


def new_call(run: AgentRun, call_id: str, tool: str, arguments: JSONObject, **values: Any) -> PendingCall:
    """Return the unsaved row of a call for which a run waits."""
    return PendingCall(
        run_id=run.pk,
        root_id=run.root_id or run.pk,
        segment=run.segment,
        call_id=stored_call_id(call_id),
        agent_key=run.agent_key,
        owner_id=run.owner_id,
        requested_by_id=run.requested_by_id,
        requested_by_name=run.requested_by_name,
        realm_owner=run.realm_owner,
        tool=tool[:128],
        arguments=arguments,
        mark=call_mark(tool, arguments),
        **values,
    )


def rule_columns(rules: JSONMapping) -> ColumnValues:
    """Return the columns that say who decides a call until when. `rules` are those of its tool."""
    duration: timedelta = rules.get("expires") or timedelta(days=settings.APPROVAL_DAYS)
    now = timezone.now()
    columns = {name: rules[rule] for name, rule in (("role", "approver"), ("four_eyes", "four_eyes")) if rule in rules}
    return {"created_at": now, "expires_at": now + duration, **columns}


# --- Events


class WaitingCalls(NamedTuple):
    """The chunks of waiting calls, and the IDs of those among them that are calls of runs below."""

    chunks: list[StreamChunk]
    below: frozenset[UUID]


def report_suspension(calls: Iterable[PendingCall]) -> WaitingCalls:
    """Return the report of the calls for which their run is about to wait, with those of its child runs."""
    chunks: list[StreamChunk] = []
    reported: set[UUID] = set()
    for call in calls:
        if call.kind != PendingCall.Kind.CHILD:
            chunks.append(waiting_chunk(call, call.call_id))
        elif (task_id := background_task_id(call)) is not None:
            # The ID of the call as the model gave it, and as the other chunks of the task have it.
            own_id = BackgroundTask.objects.filter(pk=task_id).values_list("call_id", flat=True).first()
            chunks.append(started_chunk(task_id, own_id or call.call_id, call.tool))
        elif (child_id := child_run_id(call)) is not None:
            below = waiting_calls_below(AgentRun(pk=child_id, root_id=call.root_id))
            reported |= {leaf.call.pk for leaf in below}
            chunks += [
                waiting_chunk(leaf.call, call.call_id if len(below) == 1 else f"{call.call_id}/{leaf.shown_id}")
                for leaf in below
            ]
    return WaitingCalls(chunks, frozenset(reported))


# --- Rows


def save_suspension(
    run_id: UUID, *, calls: Sequence[PendingCall], reported: Collection[UUID] = (), worked_ms: int, **values: Any
) -> None:
    """Save a run that waits for calls. The caller has locked its row, and has written its events.

    `reported` are the calls of runs below that these events report.
    """
    now = database_time(run_id)
    finished = finished_child_ids(calls) | finished_task_ids(calls)
    mark_resource(run_id, calls)
    for position, call in enumerate(calls):
        if {child_run_id(call), background_task_id(call)} & finished:
            call.state, call.decided_at = PendingCall.State.RESUMED, now
        set_times(call, now + timedelta(microseconds=position))  # lists show calls in the order of their times
    PendingCall.objects.bulk_create(calls)
    # Decisions are compared with it, and other processes write those.
    RunEvent.objects.filter(run=run_id, type=RunEvent.Type.SUSPENDED, number=values["last_event_number"]).update(
        created_at=now
    )
    columns = {"suspended_at": now, "holder": "", "lease_until": None, "attempts": 0}
    AgentRun.objects.filter(pk=run_id).update(**columns, worked_ms=F("worked_ms") + worked_ms, **values)
    run = AgentRun.objects.without_large_columns().get(pk=run_id)
    if run.cancel_requested_at is not None:  # while the process held the run, whose task had ended by then
        cancel_unannounced_calls(PendingCall.objects.waiting().filter(run=run_id))
        run_ends.end_waiting(run)
        return
    announce_after_commit(calls)
    if not continue_if_decided(run):
        propagate_suspension(run, reported)


def propagate_suspension(run: AgentRun, reported: Collection[UUID]) -> None:
    """Let the task and the runs above know that a run waits, and its stream what came after its events."""
    suspend_task_of_child(run)
    report_late_calls(run, reported)
    report_to_ancestors(run)
    if run.parent_id is None:
        run_ends.run_ending.send(AgentRun, run_id=run.pk, status=run.status, error="")


def database_time(run_id: UUID) -> datetime:
    """Return the time by the clock of the database: those of two processes may differ by minutes."""
    now: datetime = AgentRun.objects.filter(pk=run_id).values_list(Now(), flat=True).get()
    return now


def announce_after_commit(calls: Iterable[PendingCall]) -> None:
    """Notify people about the calls that they may decide, after the commit."""
    for call in calls:
        if call.kind != PendingCall.Kind.CHILD:
            announce_call(approval_requested, call)


def mark_resource(run_id: UUID, calls: Iterable[PendingCall]) -> None:
    """Set the hash of the resource of a run, by which its calls are found after the run is deleted."""
    run = AgentRun.objects.without_large_columns().select_related("resource", "thread").get(pk=run_id)
    digest = digest_of_run(run)
    for call in calls:
        call.resource_digest = digest


def set_times(call: PendingCall, now: datetime) -> None:
    """Let a call wait from now on, for as long as its tool allows."""
    if call.expires_at is not None:
        call.expires_at += now - call.created_at
    call.created_at = now


def finished_child_ids(calls: Iterable[PendingCall]) -> set[UUID]:
    """Return the IDs of the child runs of these calls that have ended meanwhile."""
    child_ids = [child_id for call in calls if (child_id := child_run_id(call)) is not None]
    if not child_ids:
        return set()
    # The end of a child locks the row of its parent, so it comes either before this or after the commit.
    return set(AgentRun.objects.filter(pk__in=child_ids, finished_at__isnull=False).values_list("pk", flat=True))


def finished_task_ids(calls: Iterable[PendingCall]) -> set[UUID]:
    """Return the IDs of the background tasks of these calls that have ended meanwhile."""
    task_ids = [task_id for call in calls if (task_id := background_task_id(call)) is not None]
    if not task_ids:
        return set()
    # The end of an awaited task locks the row of the run, so it comes either before this or after the commit.
    tasks = BackgroundTask.objects.filter(pk__in=task_ids, finished_at__isnull=False)
    return set(tasks.values_list("pk", flat=True))


def report_late_calls(run: AgentRun, reported: Collection[UUID]) -> None:
    """Report the calls of runs below for which they wait since the events of this suspension were made.

    Those runs have left it to this one, which was not suspended yet. The caller has locked its row.
    """
    waiting = waiting_calls_below(run)
    report_calls(run, [one for one in waiting if one.call.run_id != run.pk and one.call.pk not in reported])


def report_to_ancestors(run: AgentRun) -> None:
    """Copy the waiting calls of a run into the events of the suspended runs above it."""
    own_ids = {one.call.pk for one in waiting_calls_below(run)}
    parent_id = run.parent_id
    while parent_id is not None:
        parent = AgentRun.objects.select_for_update(of=("self",)).without_large_columns().get(pk=parent_id)
        if parent.status != AgentRun.Status.SUSPENDED:
            return  # it will report them when it is suspended itself
        report_calls(parent, [one for one in waiting_calls_below(parent) if one.call.pk in own_ids])
        parent_id = parent.parent_id


def report_calls(run: AgentRun, waiting: Sequence[ReachableCall]) -> None:
    """Append waiting calls to the events of a suspended run, whose row the caller has locked."""
    if waiting:
        chunks = [waiting_chunk(one.call, one.shown_id) for one in waiting]
        append_events(run, [*chunks, build_chunk(SUSPENDED_TYPE)])


def append_events(run: AgentRun, chunks: Iterable[StreamChunk]) -> None:
    """Append events to a run that no process executes. The caller has locked the row."""
    number = run.events.aggregate(last=Max("number"))["last"] or 0
    now = database_time(run.pk)
    events = [
        RunEvent(run=run, number=following, type=event_type(chunk["type"]), data=chunk, created_at=now)
        for following, chunk in enumerate(chunks, number + 1)
    ]
    RunEvent.objects.bulk_create(events)
    AgentRun.objects.filter(pk=run.pk).update(last_event_number=number + len(events))
