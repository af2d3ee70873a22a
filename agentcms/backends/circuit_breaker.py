"""A circuit breaker: it stops the calls to a server that did not respond, so that callers do not wait again."""

from __future__ import annotations

from threading import Lock
from time import monotonic


class CircuitBreaker:
    """Remembers a failure for `retry_after` seconds. Then one caller at a time tries again.

    The circuit is open while calls are stopped.
    """

    def __init__(self, retry_after: float) -> None:
        self.retry_after = retry_after
        self._lock = Lock()
        self._retry_at: float | None = None  # None while the server responds
        self.failures = 0  # since the start of the process

    @property
    def is_open(self) -> bool:
        """True if the last call failed and it is too early for the next one."""
        # Read once: another thread may set it to None between two reads.
        retry_at = self._retry_at
        return retry_at is not None and monotonic() < retry_at

    def allows_call(self) -> bool:
        """Return True if the caller may call the server. Then record a success or a failure."""
        # Without the lock: while the server responds, each call gets no further than this.
        if self._retry_at is None:
            return True
        with self._lock:
            if self.is_open:
                return False
            # Others wait for the result of this call.
            self._retry_at = monotonic() + self.retry_after
            return True

    def record_failure(self) -> None:
        """Stop calls for `retry_after` seconds."""
        with self._lock:
            self._retry_at = monotonic() + self.retry_after
            self.failures += 1

    def record_success(self) -> None:
        """Allow all calls again."""
        if self._retry_at is not None:
            with self._lock:
                self._retry_at = None
