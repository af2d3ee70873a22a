"""The runs of a thread whose signals no other model may read yet: their input processors may still change them."""

from __future__ import annotations

from collections.abc import Collection
from uuid import UUID

from memory_app.history.thread_signals import take_over_signals
from memory_app.models import Message
from runs_app.models import AgentRun


def take_over_for_run(thread_id: int, keys: Collection[str], run_id: UUID) -> None:
    """Record that a run saw signals of failed runs. The caller stores its messages in the same transaction."""
    unfinished = AgentRun.objects.unfinished().filter(thread=thread_id).exclude(pk=run_id)
    take_over_signals(thread_id, keys, run_id, [*unfinished.values_list("pk", flat=True)] if keys else [])


def find_open_runs(thread_id: int) -> set[UUID]:
    """Return the runs of a thread that a process executes, without those that have stored their messages."""
    leased = {*AgentRun.objects.leased().filter(thread=thread_id, parent=None).values_list("pk", flat=True)}
    if not leased:
        return leased
    stored = Message.objects.filter(thread=thread_id, run_id__in=leased)
    return leased - {run_id for run_id in stored.values_list("run_id", flat=True) if run_id is not None}
