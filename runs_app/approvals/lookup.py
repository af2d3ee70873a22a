"""Lookup of the call that a client means by the ID of a run and of a tool call."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple
from uuid import UUID

from django.db.models import Q

from agentcms.ids import parse_uuid
from runs_app.approvals.errors import NotSuspended, SeveralCalls
from runs_app.models import AgentRun, BackgroundTask, PendingCall
from runs_app.models.pending_call import PendingCallQuerySet, stored_call_id

CHILD_RUN_ID = "childRunId"  # in the payload of a call that waits for a child run
TASK_ID = "backgroundTaskId"  # in the payload of a call that waits for a background task


class ReachableCall(NamedTuple):
    """A call of a tool in a run or below it. `shown_id` is its ID in the events of that run.

    `paths` are the IDs that events of the run can have for it: those of the calls that lead to it, from the run on.
    `names` are all its IDs that begin with that of a call of the run itself, also without those between.
    `leaf_ids` are those in the runs below. Another call may have the same name or leaf ID.
    """

    call: PendingCall
    shown_id: str
    paths: frozenset[str]
    names: frozenset[str]
    leaf_ids: frozenset[str] = frozenset()


class CallTree:
    """The calls of a tree of runs."""

    def __init__(self, calls: Iterable[PendingCall]) -> None:
        self.calls_by_run: dict[UUID, list[PendingCall]] = defaultdict(list)
        task_ids = []
        for call in calls:
            if call.run_id is not None:
                self.calls_by_run[call.run_id].append(call)
            if (task_id := background_task_id(call)) is not None:
                task_ids.append(task_id)
        tasks = BackgroundTask.objects.filter(pk__in=task_ids, child_run_id__isnull=False) if task_ids else ()
        self.children_of_tasks: dict[UUID | None, UUID | None] = {task.pk: task.child_run_id for task in tasks}

    def reachable_from(self, run_id: UUID) -> Iterator[ReachableCall]:
        """Yield the calls of tools of a run and of the runs below it.

        A call below is named by the call of the run itself that leads to it, as Mastra does. If several are below
        that call, the name is `{own}/{theirs}`.
        """
        for own in self.calls_by_run[run_id]:
            if own.kind != PendingCall.Kind.CHILD:
                yield ReachableCall(own, own.call_id, frozenset({own.call_id}), frozenset({own.call_id}))
            elif (child_id := self.child_of(own)) is not None:
                yield from self.reachable_by(own.call_id, child_id)

    def child_of(self, call: PendingCall) -> UUID | None:
        """Return the ID of the child run for which a call waits, also by a background task, or None."""
        return child_run_id(call) or self.children_of_tasks.get(background_task_id(call))

    def is_waiting(self, call: PendingCall) -> bool:
        """Return whether people have to decide a call, or one below it. A child run that works waits for nobody."""
        if not call.is_open or call.kind != PendingCall.Kind.CHILD:
            return call.is_open
        child_id = self.child_of(call)
        return child_id is not None and any(below.call.is_open for below in self.reachable_from(child_id))

    def reachable_by(self, call_id: str, child_id: UUID) -> Iterator[ReachableCall]:
        """Yield the calls of tools of a child run and below it, named by the call that started the child run."""
        below = [*self.reachable_from(child_id)]
        for call, shown_id, paths_below, names, ids_below in below:
            leaf_ids = names | ids_below
            own_name = call_id if len(below) == 1 else f"{call_id}/{shown_id}"
            yield ReachableCall(call, own_name, ids_from(call_id, paths_below), ids_from(call_id, leaf_ids), leaf_ids)


def ids_from(call_id: str, ids_below: Iterable[str]) -> frozenset[str]:
    """Return the ID of a call, and those in the run that it started, each behind it."""
    return frozenset({call_id, *(f"{call_id}/{below}" for below in ids_below)})


def child_run_id(call: PendingCall) -> UUID | None:
    """Return the ID of the child run for which a call waits, or None."""
    return parse_uuid(str((call.payload or {}).get(CHILD_RUN_ID, "")))


def background_task_id(call: PendingCall) -> UUID | None:
    """Return the ID of the background task for which a call waits, or None."""
    return parse_uuid(str((call.payload or {}).get(TASK_ID, "")))


def waiting_calls_below(run: AgentRun) -> list[ReachableCall]:
    """Return the waiting calls of the tools of a run and of its sub-agents, the oldest first."""
    return waiting_calls_among(PendingCall.objects.waiting().filter(root_id=run.root_id or run.pk), run)


def waiting_calls_among(calls: Iterable[PendingCall], run: AgentRun) -> list[ReachableCall]:
    """Return those calls of a tree of runs that wait, are calls of tools, and are in a run or below it, by age."""
    tree = CallTree(call for call in calls if call.is_open)
    return sorted(tree.reachable_from(run.pk), key=lambda one: one.call.created_at)


def deferred_calls(run: AgentRun, calls: PendingCallQuerySet) -> Iterator[ReachableCall]:
    """Yield the calls below the sub-agents that a run started as deferred tasks. The run waits for none of them."""
    tasks = BackgroundTask.objects.filter(run=run.pk, is_awaited=False, child_run_id__isnull=False)
    children = [*tasks.order_by("number")]
    if children:
        tree = CallTree(calls.filter(root_id=run.root_id or run.pk))
        for task in children:
            if task.child_run_id is not None:
                yield from tree.reachable_by(task.call_id, task.child_run_id)


def waits_for_people(run: AgentRun) -> bool:
    """Return whether a run is suspended until a person decides. A suspended run may also wait for a working child."""
    return run.status == AgentRun.Status.SUSPENDED and bool(waiting_calls_below(run))


def find_call(run: AgentRun, call_id: str | None) -> PendingCall:
    """Return the waiting call of a run or of its sub-agents that an ID names. None names the only one.

    The ID is that of the call itself or one from an event of the run. If no waiting call has it, return the last
    decided one, so that a repeated decision is recognized. Without an ID, only the calls for which the run itself
    waits or has waited are meant: those of its deferred tasks only if there are no others. Else a client that repeats
    its decision would decide a call that nobody has seen. Raise NotSuspended or SeveralCalls.
    """
    own, deferred = waiting_calls_below(run), [*deferred_calls(run, PendingCall.objects.waiting())]
    if call_id is not None:
        matches = named_calls([*own, *deferred], call_id)
        if (earlier := find_call_decided_here(run, call_id, matches)) is not None:
            return earlier
    else:
        matches = own or ([] if find_decided_call(run, None, with_deferred=False) else deferred)
    if len(matches) > 1:
        raise SeveralCalls([reachable.shown_id for reachable in matches])
    if matches:
        return matches[0].call
    decided = find_decided_call(run, call_id)
    if decided is None:
        is_other = call_id and (own or deferred)
        raise NotSuspended(f"This run waits for no call with the ID {call_id}.") if is_other else NotSuspended()
    return decided


def named_calls(calls: Iterable[ReachableCall], call_id: str) -> list[ReachableCall]:
    """Return the calls that an ID names in the events of the run, or else those that have it otherwise or below.

    Some servers number the calls of each answer, so a run and its sub-agents have equal IDs.
    """
    reachable, ids = [*calls], known_ids(call_id)
    by_path = [one for one in reachable if ids & one.paths]
    by_name = by_path or [one for one in reachable if ids & one.names]
    return by_name or [one for one in reachable if ids & one.leaf_ids]


def known_ids(call_id: str) -> set[str]:
    """Return an ID from an event of a run, and the one that rows have in place of a long ID that a model gave."""
    return {call_id, stored_call_id(call_id)}


def find_call_decided_here(run: AgentRun, call_id: str, waiting: Sequence[ReachableCall]) -> PendingCall | None:
    """Return the last decided call that an ID names better than the waiting calls, or None.

    A call that waits may have the ID of one whose decision the client repeats: only those of the current suspension
    of the run are meant, because a model may give the ID of a call again after the run has gone on.
    """
    ids = known_ids(call_id)
    if waiting and ids & waiting[0].paths:
        return None
    is_earlier = Q(run=run.pk) & ~Q(segment=run.segment)
    calls = PendingCall.objects.filter(root_id=run.root_id or run.pk).exclude(is_earlier)
    reachable = [*CallTree(calls).reachable_from(run.pk)]
    by_path = last_decided(one.call for one in reachable if ids & one.paths)
    if by_path is not None or (waiting and ids & waiting[0].names):
        return by_path
    return last_decided(one.call for one in reachable if ids & one.names)


def find_decided_call(run: AgentRun, call_id: str | None, *, with_deferred: bool = True) -> PendingCall | None:
    """Return the last decided call that an ID names, or None. Without an ID, it must be alone in its suspension."""
    calls = PendingCall.objects.filter(root_id=run.root_id or run.pk)
    deferred = deferred_calls(run, PendingCall.objects.all()) if with_deferred else ()
    reachable = [*CallTree(calls).reachable_from(run.pk), *deferred]
    matches = [one.call for one in (reachable if call_id is None else named_calls(reachable, call_id))]
    last = last_decided(matches)
    if last is None or call_id is not None:
        return last
    is_alone = [(call.run_id, call.segment) for call in matches].count((last.run_id, last.segment)) == 1
    return last if is_alone else None


def last_decided(calls: Iterable[PendingCall]) -> PendingCall | None:
    """Return the last one of these calls that is decided, or None."""
    decided = [call for call in calls if not call.is_open]
    return max(decided, key=lambda call: (call.segment, call.created_at), default=None)
