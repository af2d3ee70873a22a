"""Deletion of threads with all that hangs on them. Their runs stay."""

from __future__ import annotations

from collections.abc import Collection

from django.db import transaction

from agentcms.db.batches import in_batches
from memory_app.history.locks import lock_threads, tree_of
from memory_app.history.threads import note_use_of_resources
from memory_app.models import Thread
from runs_app.models import AgentRun

THREADS_PER_BATCH = 500  # of a transaction


def lock_trees(thread_ids: Collection[int]) -> list[int] | None:
    """Lock threads with those below them, after their runs. Return the IDs of all.

    The end of a run locks its row first, and then the thread. Return None if a run or a thread was added before the
    threads were locked: the caller has to begin its transaction again. None is added while they are locked.
    """
    tree = tree_of(thread_ids)
    runs = AgentRun.objects.filter(thread__in=tree)
    locked = runs.lock_in_order()
    lock_threads(tree)
    is_whole = tree_of(thread_ids) == tree and {*runs.values_list("pk", flat=True)} <= locked
    return tree if is_whole else None


def delete_threads(thread_ids: Collection[int]) -> int:
    """Delete threads with all that hangs on them, and return their number, with those of sub-agents.

    They are locked first: a message that is stored while the rows to delete are collected would violate a constraint.
    """
    total = 0
    for batch in in_batches([*thread_ids], THREADS_PER_BATCH):
        while (count := delete_locked_threads(batch)) is None:
            pass
        total += count
    return total


@transaction.atomic
def delete_locked_threads(thread_ids: Collection[int]) -> int | None:
    """Delete threads and those below them, or return None if others were added meanwhile."""
    if lock_trees(thread_ids) is None:
        return None
    note_use_of_resources(thread_ids)
    _, deleted = Thread.objects.filter(pk__in=thread_ids).delete()
    return deleted.get(Thread._meta.label, 0)
