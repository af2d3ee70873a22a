"""Equal requests of one process at the same time (single flight): one asks the model, also without the cache."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, field
from weakref import WeakValueDictionary

from runs_app.response_cache.store import NOT_STORED_SECONDS


@dataclass(eq=False)
class Flight:
    """Equal requests of an event loop. It exists as long as one of them is in progress.

    Those that wait poll the cache only one after the other. While the cache is unavailable, they get the answer to
    the first from here.
    """

    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    text: str = ""  # JSON of the answer, blank if it may not be repeated
    ends_at: float = 0  # when nobody gets it any more

    def finish(self, text: str, seconds: int) -> None:
        """Let those that wait use an answer for this many seconds, or ask the model themselves if it is blank."""
        self.text = text
        self.ends_at = time.monotonic() + min(seconds, NOT_STORED_SECONDS)

    @property
    def is_finished(self) -> bool:
        return time.monotonic() < self.ends_at


_flights: WeakValueDictionary[tuple[int, str], Flight] = WeakValueDictionary()


def flight_of(key: str) -> Flight:
    """Return the flight of a key in the running event loop."""
    # By loop, because a lock of asyncio belongs to one.
    return _flights.setdefault((id(asyncio.get_running_loop()), key), Flight())
