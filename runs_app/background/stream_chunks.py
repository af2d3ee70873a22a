"""The chunks of background tasks in streams, in wire format."""

from __future__ import annotations

from uuid import UUID

from agentcms.wire.json_types import JSONObject
from agentcms.wire.timestamps import format_timestamp
from runs_app.approvals.lookup import TASK_ID
from runs_app.events.stream_chunks import StreamChunk, build_chunk
from runs_app.models import BackgroundTask
from runs_app.models.background_task import TaskStatus

STARTED_TYPE = "background-task-started"


def started_chunk(task_id: UUID, call_id: str, tool: str) -> StreamChunk:
    """Return the chunk of a call that has become a task."""
    return build_chunk(STARTED_TYPE, taskId=str(task_id), toolName=tool, toolCallId=call_id)


def dispatch_chunks(call_id: str, tool: str, result: object) -> list[StreamChunk]:
    """Return the chunk of a call whose result is the acknowledgement of a task, or nothing."""
    task_id = result.get(TASK_ID) if isinstance(result, dict) else None
    return [started_chunk(task_id, call_id, tool)] if task_id else []


def running_chunk(task: BackgroundTask, *, is_resumed: bool = False) -> StreamChunk:
    started = format_timestamp(task.started_at) if task.started_at else None
    kind = "background-task-resumed" if is_resumed else "background-task-running"
    return build_chunk(kind, **task_payload(task), startedAt=started, args=task.arguments)


def suspended_chunk(task: BackgroundTask, waits_for: JSONObject | None) -> StreamChunk:
    """Return the chunk of a task whose sub-agent waits for a person, with the calls that a person decides."""
    suspended = format_timestamp(task.suspended_at) if task.suspended_at else None
    return build_chunk(
        "background-task-suspended",
        **task_payload(task),
        args=task.arguments,
        suspendedAt=suspended,
        suspendPayload=waits_for,
    )


def output_chunk(task: BackgroundTask) -> StreamChunk:
    """Return the chunk of what the tool has reported of its progress."""
    output = {"toolCallId": task.call_id, "toolName": task.tool, "output": task.progress}
    return build_chunk(
        "background-task-output", **task_payload(task), payload={"type": "tool-output", "payload": output}
    )


def progress_chunk(tasks: list[BackgroundTask], elapsed_ms: int) -> StreamChunk:
    """Return the chunk that says which tasks have not ended."""
    running = sum(task.status == TaskStatus.RUNNING for task in tasks)
    ids = [str(task.pk) for task in tasks]
    return build_chunk("background-task-progress", taskIds=ids, runningCount=running, elapsedMs=elapsed_ms)


def end_chunk(task: BackgroundTask) -> StreamChunk:
    """Return the chunk of the end of a task."""
    payload = {**task_payload(task), "completedAt": format_timestamp(task.finished_at) if task.finished_at else None}
    if task.status == TaskStatus.COMPLETED:
        return build_chunk("background-task-completed", **payload, result=task.result)
    if task.status == TaskStatus.CANCELLED:
        return build_chunk("background-task-cancelled", **payload)
    return build_chunk("background-task-failed", **payload, error={"message": task.error})


def task_payload(task: BackgroundTask) -> JSONObject:
    return {
        "taskId": str(task.pk),
        "toolName": task.tool,
        "toolCallId": task.call_id,
        "runId": str(task.run_id),
        "agentId": task.agent_key,
    }
