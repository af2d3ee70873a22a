"""Places for long jobs in a worker. More of them wait without a thread, so that other jobs and runs go on."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any
from uuid import UUID

from jobs_app import runner
from jobs_app.models import Job


class JobPlaces:
    """The places for a kind of job in this process, at most `limit()`, and the jobs that wait, the first one first."""

    def __init__(self, limit: Callable[[], int]) -> None:
        self.limit = limit
        self.lock = threading.Lock()
        self.taken = 0
        self.waiting: dict[UUID, None] = {}

    def run(self, job: Job, work: Callable[[Job], Any]) -> Any:
        """Return the result of a job, or queue it again if it has to wait for a place."""
        if not self.take(job):
            return runner.CONTINUES
        try:
            return work(job)
        finally:
            self.free()

    def take(self, job: Job) -> bool:
        """Take a place for a job. Return False if it has to wait, and queue it again."""
        with self.lock:
            self.waiting.setdefault(job.pk)
            self._forget_others_that_left(job.pk)
            if [*self.waiting].index(job.pk) < self.limit() - self.taken:
                self.taken += 1
                del self.waiting[job.pk]
                return True
            job.release()
            return False

    def free(self) -> None:
        """Free a place, and call the job that has waited longest. Beat calls those of a process that died."""
        with self.lock:
            self.taken -= 1
            self._forget_others_that_left()
            first = next(iter(self.waiting), None)
        if first is not None:
            runner.send(first)

    def _forget_others_that_left(self, job_id: UUID | None = None) -> None:
        """Forget jobs that were deleted, or that another worker has taken."""
        others = [key for key in self.waiting if key != job_id]
        queued = Job.objects.filter(pk__in=others, state=Job.State.QUEUED)
        left = {*others} - {*queued.values_list("pk", flat=True)} if others else ()
        for key in left:
            del self.waiting[key]
