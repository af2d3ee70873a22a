"""The ends of background tasks. A task ends once, and then frees its slot."""

from __future__ import annotations

from uuid import UUID

from django.db import transaction
from django.utils import timezone

from agentcms.db.after_commit import call_after_commit
from runs_app.approvals.resuming import settle_task_call
from runs_app.background.end_signal import task_ended
from runs_app.background.slots import fill_slots
from runs_app.child_results import DELETED_AGENT_MESSAGE, RunResult, SubAgentError, child_output
from runs_app.engine import run_ends
from runs_app.models import AgentRun, BackgroundTask
from runs_app.models.background_task import TaskStatus
from runs_app.models.run import MAX_PARENT_CALL_ID

CANCELLED_MESSAGE = "The task was cancelled."


def end_task(
    task: BackgroundTask, status: str, *, result: object = None, error: str = "", is_delivered: bool = True
) -> bool:
    """Save the end of a task. Return False if it has ended already, or if another worker has it.

    `is_delivered` is False for a task whose result nobody is to get.
    """
    with transaction.atomic():
        if task.is_awaited:  # the run is locked first, as where it is suspended
            AgentRun.objects.select_for_update(of=("self",)).filter(pk=task.run_id).only("pk").first()
        own = BackgroundTask.objects.unfinished().filter(pk=task.pk, attempts=task.attempts)
        columns = {
            "status": status,
            "result": result,
            "error": error,
            "finished_at": timezone.now(),
            "is_delivery_due": is_delivered and not task.is_awaited,
        }
        if not own.update(**columns):
            return False
        if task.is_awaited:
            settle_task_call(task.pk, task.run_id)
        call_after_commit(fill_slots)
        call_after_commit(task_ended.send, BackgroundTask, status=str(status))
    task.refresh_from_db()
    return True


def cancel_task(task: BackgroundTask, *, is_delivered: bool = True) -> bool:
    """Cancel a task, and the run of its sub-agent. Return False if it has ended already, or was deleted.

    The worker that executes it notices within a second.
    """
    # Another worker may have begun the next attempt since the row was read.
    while not end_task(task, TaskStatus.CANCELLED, error=CANCELLED_MESSAGE, is_delivered=is_delivered):
        try:
            task.refresh_from_db()
        except BackgroundTask.DoesNotExist:  # deleted with its agent
            return False
        if task.is_finished:
            return False
    children = AgentRun.objects.unfinished().filter(
        parent=task.run_id, parent_call_id=task.call_key[:MAX_PARENT_CALL_ID]
    )
    for child_id in list(children.values_list("pk", flat=True)):
        run_ends.cancel_run(child_id)
    return True


def cancel_tasks_of_run(run_id: UUID) -> None:
    """Cancel the tasks of a run that was cancelled. Nobody gets their results."""
    for task in BackgroundTask.objects.unfinished().filter(run=run_id):
        cancel_task(task, is_delivered=False)


def settle_task_of_child(child_id: UUID) -> bool:
    """End the task whose sub-agent has waited for a person, once its run has ended. Return False if there is none.

    The run may have been deleted with its agent.
    """
    task = BackgroundTask.objects.unfinished().filter(child_run_id=child_id).first()
    columns = ("status", "output", "error", "agent_key", "finished_at")
    child = AgentRun.objects.filter(pk=child_id).only(*columns).first()
    if task is None or (child is not None and child.finished_at is None):
        return False
    if child is None:
        return end_task(task, TaskStatus.FAILED, error=DELETED_AGENT_MESSAGE)
    try:
        output = child_output(child.agent_key, RunResult.of_row(child))
    except SubAgentError as error:
        return end_task(task, TaskStatus.FAILED, error=str(error))
    return end_task(task, TaskStatus.COMPLETED, result=output)
