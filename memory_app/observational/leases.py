"""The lease of a thread: one process at a time makes its observations.

The value of the lease is its fence. A process that was too slow finds another value, and stores nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from django.db.models import Q
from django.utils import timezone

from jobs_app.models import lease_duration
from memory_app.models import Thread


class ObservingElsewhere(Exception):
    """Another process makes the observations of the thread, or the thread was deleted."""


@dataclass
class ThreadLease:
    """A lease that this process holds."""

    thread_id: int
    until: datetime

    def renew(self) -> None:
        """Extend the lease. Raise ObservingElsewhere if another process has taken it."""
        until = timezone.now() + lease_duration()
        if not Thread.objects.filter(pk=self.thread_id, observing_until=self.until).update(observing_until=until):
            raise ObservingElsewhere
        self.until = until

    def lock_thread(self) -> Thread:
        """Return the locked thread. The caller is in a transaction. Raise ObservingElsewhere if the lease is lost."""
        thread = Thread.objects.select_for_update(of=("self",)).filter(pk=self.thread_id).first()
        if thread is None or thread.observing_until != self.until:
            raise ObservingElsewhere
        return thread

    def release(self) -> None:
        """End the lease, if this process still holds it."""
        Thread.objects.filter(pk=self.thread_id, observing_until=self.until).update(observing_until=None)


def take_lease(thread_id: int, *, from_dead_process: bool = False) -> ThreadLease | None:
    """Take the lease of a thread, or return None if another process holds it.

    `from_dead_process` takes it from a process that is known to have died.
    """
    now = timezone.now()
    threads = Thread.objects.filter(pk=thread_id)
    until = now + lease_duration()
    if not from_dead_process:
        set_back = Q(observing_until__gt=until + lease_duration())  # the clock, since the lease began
        threads = threads.filter(Q(observing_until=None) | Q(observing_until__lt=now) | set_back)
    # One UPDATE decides, so two processes can never take the same lease.
    return ThreadLease(thread_id, until) if threads.update(observing_until=until) else None
