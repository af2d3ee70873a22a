"""A limit of the requests that Django handles at once."""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable

log = logging.getLogger(__name__)

RequestTask = Callable[[], None]


class RequestQueue:
    """Runs jobs in the threads that bring them, at most so many at once; the others wait without a thread."""

    def __init__(self, limit: int) -> None:
        self.free = limit
        self.waiting: deque[RequestTask] = deque()
        self.lock = threading.Lock()

    def run(self, job: RequestTask) -> None:
        """Run a job in this thread, and then those that wait. If none is free, let another thread run it."""
        with self.lock:
            if not self.free:
                self.waiting.append(job)
                return
            self.free -= 1
        while True:
            try:
                job()
            except Exception:
                # The loop goes on: jobs that wait have no other thread.
                log.exception("A request failed after its response.")
            with self.lock:
                # In one step with the count: a job that came in between would wait although a thread is free.
                if not self.waiting:
                    self.free += 1
                    return
                job = self.waiting.popleft()
