"""A limit of the requests that Django handles at once."""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable

log = logging.getLogger(__name__)

RequestTask = Callable[[], None]


class RequestQueue:
    """Handles requests in the threads that bring them, at most `limit` at once. The others wait without a thread."""

    def __init__(self, limit: int) -> None:
        self.free = limit
        self.waiting: deque[RequestTask] = deque()
        self.lock = threading.Lock()

    def run(self, task: RequestTask) -> None:
        """Handle a request in this thread, and then those that wait. If no place is free, another thread does it."""
        with self.lock:
            if not self.free:
                self.waiting.append(task)
                return
            self.free -= 1
        while True:
            try:
                task()
            except Exception:
                # The loop goes on: requests that wait have no other thread.
                log.exception("A request failed after its response.")
            with self.lock:
                # In one step with the count: a request that came in between would wait although a thread is free.
                if not self.waiting:
                    self.free += 1
                    return
                task = self.waiting.popleft()
