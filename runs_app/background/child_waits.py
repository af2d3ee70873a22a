"""Background tasks whose sub-agent waits for a person: they wait and continue with the run of the sub-agent."""

from __future__ import annotations

from collections.abc import Iterable
from uuid import UUID

from django.utils import timezone

from agentcms.db.after_commit import call_after_commit
from agentcms.wire.json_types import JSONObject
from runs_app.approvals.lookup import CallTree
from runs_app.background.slots import fill_slots
from runs_app.models import AgentRun, BackgroundTask, PendingCall
from runs_app.models.background_task import TaskStatus


def suspend_task_of_child(child: AgentRun) -> None:
    """Let the task of a child run wait with it, in the transaction that suspends the child run. Its slot is free."""
    if child.parent_id is None:
        return
    # The parent is locked before the task, as where an awaited task ends.
    AgentRun.objects.select_for_update(of=("self",)).filter(pk=child.parent_id).only("pk").first()
    tasks = BackgroundTask.objects.of_child(child).filter(status=TaskStatus.RUNNING)
    if tasks.update(status=TaskStatus.SUSPENDED, suspended_at=timezone.now(), child_run_id=child.pk):
        call_after_commit(fill_slots)


def suspend_payloads(tasks: Iterable[BackgroundTask]) -> dict[UUID, JSONObject]:
    """Return what each waiting task waits for, by its ID: the run of its sub-agent, and the calls to decide."""
    waiting = {
        task.pk: task.child_run_id for task in tasks if task.status == TaskStatus.SUSPENDED and task.child_run_id
    }
    if not waiting:
        return {}
    roots = AgentRun.objects.filter(pk__in=waiting.values()).values("root_id")
    tree = CallTree(PendingCall.objects.waiting().filter(root_id__in=roots))
    return {
        task_id: {"runId": str(child_id), "calls": [call_body(one.call) for one in tree.reachable_from(child_id)]}
        for task_id, child_id in waiting.items()
    }


def call_body(call: PendingCall) -> JSONObject:
    """Return what a client needs to decide a call: its ID as an approval, and those with which its run names it."""
    return {
        "approvalId": str(call.pk),
        "runId": str(call.run_id),
        "agentId": call.agent_key,
        "toolCallId": call.call_id,
        "toolName": call.tool,
        "args": call.arguments,
    }
