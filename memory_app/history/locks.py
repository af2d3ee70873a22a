"""Locks of threads. Everybody takes them in one order: runs first, then threads, each in the order of their IDs.

Of two transactions that lock the same rows in different orders, each could wait for the other.
"""

from __future__ import annotations

from collections.abc import Collection

from memory_app.models import Thread


def lock_threads(thread_ids: Collection[int]) -> dict[int, Thread]:
    """Lock threads, and return those that are still there by ID. The caller is in a transaction."""
    threads = Thread.objects.filter(pk__in=thread_ids).order_by("pk").select_for_update(of=("self",))
    return {thread.pk: thread for thread in threads}


def tree_of(thread_ids: Collection[int]) -> list[int]:
    """Return the IDs of threads, and of the threads of sub-agents below them."""
    tree, level = {*thread_ids}, [*thread_ids]
    while level:
        level = [*Thread.objects.filter(parent__in=level).values_list("pk", flat=True)]
        tree |= {*level}
    return sorted(tree)
