"""Signal receivers of this app, and the signals of approvals for other apps."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from django.db import transaction
from django.db.models import Q
from django.db.models.signals import post_delete, post_save, pre_delete
from django.dispatch import receiver

from agentcms.db.after_commit import call_after_commit
from agents_app.editing.saving import agents_deleting
from agents_app.models import Agent
from runs_app.approvals.approval_signals import approval_decided, approval_requested, approval_stored
from runs_app.approvals.resuming import release_deleted_runs
from runs_app.background.delivery import note_woken_run
from runs_app.background.endings import cancel_tasks_of_run, settle_task_of_child
from runs_app.engine.run_ends import run_ended, run_ending
from runs_app.events.notifications import notifier
from runs_app.models import AgentRun, ModelProvider, PendingCall
from runs_app.notices.webhook import DECIDED_EVENT, REQUESTED_EVENT, enqueue_webhook
from runs_app.providers.cached_providers import provider_table
from runs_app.thread_signals.woken_runs import start_next_run, start_next_run_of_thread

__all__ = ["approval_decided", "approval_requested"]


@receiver([post_save, post_delete], sender=ModelProvider)
def invalidate_providers(**kwargs: object) -> None:
    """Apply a change of providers in this process at once. Other processes apply it within a second."""
    provider_table.invalidate_after_change()


@receiver(approval_stored)
def notify_webhook(call: PendingCall, **kwargs: object) -> None:
    """Notify the webhook that a call waits for people, or how it was decided. The job is stored with the call."""
    enqueue_webhook(REQUESTED_EVENT if call.is_open else DECIDED_EVENT, call)


@receiver(run_ending)
def wake_next_run(run_id: UUID, status: str, error: str, **kwargs: object) -> None:
    """Start the next run of a thread for which signals wait."""
    if (run := start_next_run(run_id, status=status, error=error)) is not None:
        note_woken_run(run)


def wake_after_deletion(thread_id: int) -> None:
    """Start the next run of a thread whose active run was deleted: other agents have signals there, too."""
    # A transaction of its own, because it locks the thread: that of the deletion has locked agents before.
    with transaction.atomic():
        if (run := start_next_run_of_thread(thread_id)) is not None:
            note_woken_run(run)


@receiver(run_ended)
def settle_background_tasks(status: str, run_id: UUID, parent_id: UUID | None, **kwargs: object) -> None:
    """Cancel the background tasks of a cancelled run, and continue the one that waits for this child run."""
    if status == AgentRun.Status.CANCELLED:
        cancel_tasks_of_run(run_id)
    if parent_id is not None:
        settle_task_of_child(run_id)


@receiver(agents_deleting)
def lock_runs_of_agents(ids: Sequence[str], **kwargs: object) -> None:
    """Lock the runs of agents and those that are deleted or continued with them, before the agents.

    The end of a run locks its row first, and then the agent, to which the counts of its scorers refer.
    """
    own = AgentRun.objects.filter(agent__in=ids)
    deleted = Q(agent__in=ids) | Q(parent__in=own.values("pk"))
    AgentRun.objects.filter(deleted | Q(pk__in=own.unfinished().values("parent"))).lock_in_order()


@receiver(pre_delete, sender=Agent)
def lock_unfinished_runs(instance: Agent, **kwargs: object) -> None:
    """Lock the unfinished runs of an agent, so that no process adds events while they are deleted with it.

    Nobody can decide their calls any more, and runs that wait for them continue. These are locked with them, in order.
    """
    unfinished = AgentRun.objects.filter(agent=instance).unfinished()
    AgentRun.objects.filter(Q(pk__in=unfinished.values("pk")) | Q(pk__in=unfinished.values("parent"))).lock_in_order()
    runs = [*unfinished.values_list("pk", "parent_id", "thread_id")]
    release_deleted_runs((run_id, parent_id) for run_id, parent_id, _ in runs)
    # Otherwise their readers would wait until they look again.
    call_after_commit(notifier.notify, {run_id: True for run_id, *_ in runs})
    for thread_id in {thread_id for _, parent_id, thread_id in runs if thread_id is not None and parent_id is None}:
        call_after_commit(wake_after_deletion, thread_id)
