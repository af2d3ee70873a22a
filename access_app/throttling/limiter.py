"""Rate limits. Each process counts calls and adds its count to the cache a few times in a window."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from threading import Lock

from django.core.cache import cache
from django.dispatch import Signal

from agentcms.cache import CACHE_ERRORS
from agentcms.rate import Rate

log = logging.getLogger(__name__)

SHARES_PER_WINDOW = 20  # how often a process adds its count to the cache in a window
MAX_CALLERS = 10_000  # windows in the memory of one process

counting_alone = Signal()  # argument `throttle`: the process could not share its count through the cache


@dataclass
class _Window:
    ends_at: float
    shared: int = 0  # calls of all processes, as last read from the cache
    unshared: int = 0  # calls of this process that are not in the cache yet


@dataclass
class Limiter:
    """A counter of calls against a rate. Without the cache, each process counts alone and so allows more calls."""

    name: str
    rate: Callable[[], Rate | None]
    windows: dict[str, _Window] = field(default_factory=dict)
    lock: Lock = field(default_factory=Lock)

    def hit(self, caller: str) -> int:
        """Count a call. Return the seconds to wait if there were too many, else 0."""
        rate = self.rate()
        if rate is None:
            return 0
        now = time.time()
        with self.lock:
            window = self._current_window(caller, now, rate)
            window.unshared += 1
            count = window.shared + window.unshared
            is_due = window.unshared >= max(1, rate.calls // SHARES_PER_WINDOW)
            to_share = window.unshared if is_due else 0
            # Under the lock, so that no other thread shares the same calls. They count here even if the cache fails.
            window.unshared -= to_share
            window.shared += to_share
        # Without the lock, because the cache may take long to answer.
        if to_share:
            self.share(f"rate:{self.name}:{caller}:{window_start(now, rate):.0f}", window, to_share, rate)
            count = max(count, window.shared)
        return max(1, int(window.ends_at - now) + 1) if count > rate.calls else 0

    def _current_window(self, caller: str, now: float, rate: Rate) -> _Window:
        ends_at = window_start(now, rate) + rate.seconds
        window = self.windows.get(caller)
        # The clock may have been set back since: the window must not last until its old time.
        if window is None or window.ends_at <= now or window.ends_at > ends_at + rate.seconds:
            # All at once: a search for the oldest would hold up every call. Shared counts stay in the cache.
            if len(self.windows) >= MAX_CALLERS:
                self.windows.clear()
            window = self.windows[caller] = _Window(ends_at)
        return window

    def share(self, key: str, window: _Window, calls: int, rate: Rate) -> None:
        """Add calls to the count in the cache and read the count of all processes."""
        try:
            cache.add(key, 0, rate.seconds + 1)
            window.shared = max(window.shared, cache.incr(key, calls))
        except ValueError:  # the window ended between the two calls
            pass
        except CACHE_ERRORS:
            log.warning("The cache is unavailable: each process counts calls alone.")
            counting_alone.send(None, throttle=self.name)


def window_start(now: float, rate: Rate) -> float:
    """Return when the current window began.

    By the clock, so that the windows of all processes begin at the same time and share one key in the cache.
    """
    return now // rate.seconds * rate.seconds
