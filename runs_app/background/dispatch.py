"""Dispatch of tool calls as background tasks. A repeated dispatch of a call finds the task of the first."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID, uuid5

from django.conf import settings
from django.db import transaction
from django.db.models import Max, Q

from agentcms.db.after_commit import call_after_commit
from agentcms.db.locks import lock_name
from agentcms.ids import uuid7
from agentcms.wire.canonical import sha256_hex
from agentcms.wire.json_types import JSONMapping
from agents_app.configuration.background_tasks import AWAITED, BackgroundRules
from runs_app.background.slots import fill_slots
from runs_app.models import AgentRun, BackgroundTask, BackgroundTaskDelivery

RUN_COLUMNS = ("parent_id", "parent_call_id", "agent_key", "owner_id", "thread_id")
MAX_TASK_DEPTH = 3  # of tasks that start tasks
MAX_READABLE_LENGTH = 64  # characters of the ID of a call in its key; a child run stores 128 of the key


@dataclass(frozen=True)
class BackgroundCall:
    """A tool call that is about to become a task.

    `key` is the ID of the call, unique in the run, or blank if the run is not durable: it repeats no call.
    """

    run_id: UUID
    tool: str
    call_id: str
    key: str
    number: int  # the position of the call in its run
    arguments: JSONMapping
    rules: BackgroundRules
    is_at_most_once: bool = False
    traceparent: str = ""


def find_or_create_task(call: BackgroundCall) -> BackgroundTask | None:
    """Return the task of a call. Return None if the tasks above it are too many: then the call stays in the run."""
    with transaction.atomic():
        # Until its task exists there is no row to lock, and a call may be repeated while the first one is stored.
        lock_name(f"background tasks of run {call.run_id}")
        if call.key and (task := BackgroundTask.objects.filter(run=call.run_id, call_key=call.key).first()):
            return task
        run = AgentRun.objects.only(*RUN_COLUMNS).get(pk=call.run_id)
        depth = depth_of(run) + 1
        if depth > MAX_TASK_DEPTH:
            return None
        task = create_task(call, run, depth)
        # The task is stored, and maintenance starts it later if it cannot start now.
        call_after_commit(fill_slots)
    return task


def create_task(call: BackgroundCall, run: AgentRun, depth: int) -> BackgroundTask:
    key = call.key or unrepeated_key(call.call_id)
    return BackgroundTask.objects.create(
        pk=uuid5(call.run_id, key),
        run=run,
        thread_id=run.thread_id,
        agent_key=run.agent_key,
        owner_id=run.owner_id,
        tool=call.tool[:128],
        call_id=call.call_id,
        call_key=key,
        arguments=call.arguments,
        is_awaited=call.rules.disposition == AWAITED,
        is_at_most_once=call.is_at_most_once,
        is_ordered=call.rules.ordered,
        number=call.number,
        depth=depth,
        timeout_ms=limited_timeout(call.rules.timeout_ms),
        max_retries=0 if call.is_at_most_once else limited_retries(call.rules.max_retries),
        traceparent=call.traceparent,
    )


def unrepeated_key(call_id: str) -> str:
    """Return a unique key for a call that is not repeated: other calls of its run may have the same ID."""
    readable = call_id if len(call_id) <= MAX_READABLE_LENGTH else sha256_hex(call_id)
    return f"{readable}/{uuid7().hex}"


def limited_timeout(timeout_ms: int | None) -> int:
    """Return the time that a task may take, within what the operator allows."""
    maximum = settings.BACKGROUND_TASK_MAX_TIMEOUT * 1000
    return min(settings.BACKGROUND_TASK_TIMEOUT * 1000 if timeout_ms is None else timeout_ms, maximum)


def limited_retries(retries: int | None) -> int:
    return min(retries or 0, settings.BACKGROUND_TASK_MAX_RETRIES)


def depth_of(run: AgentRun) -> int:
    """Return the number of tasks above a run: those that run a sub-agent, and those whose results woke a run."""
    above = Q(pk=None)
    while run.parent_id is not None:
        above |= Q(run=run.parent_id, child_call_id=run.parent_call_id)
        run = AgentRun.objects.only("pk", "parent_id", "parent_call_id").get(pk=run.parent_id)
    depths = [BackgroundTask.objects.with_child_call_id().filter(above).aggregate(depth=Max("depth"))["depth"]]
    woken = BackgroundTaskDelivery.objects.filter(woken_run_id=run.pk)
    depths.append(woken.aggregate(depth=Max("task__depth"))["depth"])
    return max(depth or 0 for depth in depths)
