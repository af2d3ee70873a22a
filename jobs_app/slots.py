"""Slots for long jobs in a worker. More of them wait without a thread, so that other jobs and runs go on."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable
from uuid import UUID

from jobs_app import runner
from jobs_app.models import Job


class JobSlots:
    """The slots for a kind of job in this process, at most `limit()`, and the jobs that wait.

    The jobs of an owner take turns with those of others, so that a team with many does not hold up the next one. Among
    jobs of one owner, the first one is first.
    """

    def __init__(self, limit: Callable[[], int]) -> None:
        self.limit = limit
        self.lock = threading.Lock()
        self.running: Counter[str] = Counter()  # by owner
        self.waiting: dict[UUID, str] = {}  # the owner of each
        self.served: dict[str, float] = {}  # when an owner took a slot last

    @property
    def taken(self) -> int:
        return self.running.total()

    def run(self, job: Job, work: Callable[[Job], object], owner_id: str = "") -> object:
        """Return the result of a job, or queue it again if it has to wait for a slot."""
        if not self.take(job, owner_id):
            return runner.CONTINUES
        try:
            return work(job)
        finally:
            self.free(owner_id)

    def take(self, job: Job, owner_id: str = "") -> bool:
        """Take a slot for a job. Return False if it has to wait, and queue it again."""
        with self.lock:
            self.waiting.setdefault(job.pk, owner_id)
            self._forget_others_that_left(job.pk)
            if self._turns().index(job.pk) < self.limit() - self.taken:
                self.running[owner_id] += 1
                self.served[owner_id] = time.monotonic()
                del self.waiting[job.pk]
                return True
            # Under the lock: a slot that becomes free at this moment must find the job queued, or nobody calls it.
            job.release()
            return False

    def free(self, owner_id: str = "") -> None:
        """Free a slot, and call the job whose turn it is. Beat calls those of a process that died."""
        with self.lock:
            self.running[owner_id] -= 1
            self._forget_others_that_left()
            first = next(iter(self._turns()), None)
        # Without the lock, because the broker may take long to answer.
        if first is not None:
            runner.send_job(first)

    def _turns(self) -> list[UUID]:
        """Return the waiting jobs in the order in which they take slots.

        First come those of owners that have fewest slots, and among them of those that took one longest ago.
        """
        ahead = self.running.copy()
        turn_of: dict[UUID, tuple[int, float]] = {}
        for key, owner_id in self.waiting.items():
            turn_of[key] = ahead[owner_id], self.served.get(owner_id, 0.0)
            ahead[owner_id] += 1
        return sorted(self.waiting, key=turn_of.__getitem__)

    def _forget_others_that_left(self, job_id: UUID | None = None) -> None:
        """Forget jobs that were deleted, or that another worker has taken."""
        others = [key for key in self.waiting if key != job_id]
        queued = Job.objects.filter(pk__in=others, state=Job.State.QUEUED)
        left = {*others} - {*queued.values_list("pk", flat=True)} if others else ()
        for key in left:
            del self.waiting[key]
