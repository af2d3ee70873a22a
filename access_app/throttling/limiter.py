"""How often a program may call: counted in each process, and shared through the cache a few times in a window."""

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

SHARES_PER_WINDOW = 20  # how often in a window a process tells the others
MAX_CALLERS = 10_000  # kept in mind by one process

counting_alone = Signal()  # throttle: what this process counted could not be told to the others


@dataclass
class _Window:
    ends: float
    everybody: int = 0  # as the cache last said, this process included
    untold: int = 0


@dataclass
class Limiter:
    """Counts callers against a rate. Where the cache is away each process counts alone: it fails open."""

    name: str
    rate: Callable[[], Rate | None]
    windows: dict[str, _Window] = field(default_factory=dict)
    lock: Lock = field(default_factory=Lock)

    def hit(self, caller: str) -> int:
        """Count a call; the seconds to wait where there were too many, else 0."""
        rate = self.rate()
        if rate is None:
            return 0
        now = time.time()
        start = now // rate.seconds * rate.seconds
        with self.lock:
            window = self.windows.get(caller)
            if window is None or window.ends <= now:
                if len(self.windows) >= MAX_CALLERS:
                    self.windows.clear()
                window = self.windows[caller] = _Window(start + rate.seconds)
            window.untold += 1
            count = window.everybody + window.untold
            tell = window.untold if window.untold >= max(1, rate.calls // SHARES_PER_WINDOW) else 0
            window.untold -= tell
            window.everybody += tell
        if tell:
            self.share(f"rate:{self.name}:{caller}:{start:.0f}", window, tell, rate)
            count = max(count, window.everybody)
        return max(1, int(window.ends - now) + 1) if count > rate.calls else 0

    def share(self, key: str, window: _Window, calls: int, rate: Rate) -> None:
        try:
            cache.add(key, 0, rate.seconds + 1)
            window.everybody = max(window.everybody, cache.incr(key, calls))
        except ValueError:  # the window ended in between
            pass
        except CACHE_ERRORS:
            log.warning("The cache is away: each process counts calls alone.")
            counting_alone.send(None, throttle=self.name)
