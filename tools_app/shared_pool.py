"""A pool of connections or processes of one event loop. No team can take all of them."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Generic, NamedTuple, TypeVar

from access_app.permissions import SHARED_OWNER


class PoolLimits(NamedTuple):
    """The most entries in all and of one team, and the seconds after which an entry that nobody uses ends."""

    entries: int
    entries_of_team: int
    idle_seconds: float


@dataclass
class PoolEntry:
    """A connection or a process with its users. It ends some time after the last of them."""

    owner_id: str
    users: int = 0
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    timer: asyncio.TimerHandle | None = None


Key = TypeVar("Key", bound=Hashable)
Entry = TypeVar("Entry", bound=PoolEntry)


class SharedPool(ABC, Generic[Key, Entry]):
    """Entries by key. Callers with equal keys share one, and others wait while there are too many."""

    def __init__(self, limits: PoolLimits) -> None:
        self.limits = limits
        self.entries: dict[Key, Entry] = {}  # the least recently used first
        self.changed = asyncio.Event()  # set at the next release

    @abstractmethod
    def end(self, entry: Entry) -> None:
        """Close what an entry has opened. Nobody uses it, and nobody can get it any more."""

    async def take(self, key: Key, owner_id: str, build: Callable[[], Entry]) -> Entry:
        """Return the entry of a key, built if there is none. Wait while all that the team may have are in use.

        Call `release` for each entry that was taken.
        """
        while key not in self.entries and (counted := self._entries_at_limit(owner_id)):
            idle = next((other for other in counted if self.entries[other].users == 0), None)
            if idle is not None:
                self.close(idle)
            else:
                await self.changed.wait()
        # Taken out and put back: the last entry is the most recently used one.
        entry = self.entries.pop(key, None) or build()
        self.entries[key] = entry
        entry.users += 1
        if entry.timer is not None:
            entry.timer.cancel()
            entry.timer = None
        return entry

    def _entries_at_limit(self, owner_id: str) -> list[Key]:
        """Return the entries under a limit that is reached: one has to end before the team gets another. Else none."""
        if len(self.entries) >= self.limits.entries:
            return list(self.entries)
        own = [key for key, entry in self.entries.items() if entry.owner_id == owner_id]
        return own if owner_id != SHARED_OWNER and len(own) >= self.limits.entries_of_team else []

    def discard(self, key: Key, entry: Entry) -> None:
        """Let no other caller get an entry. It ends with its last user."""
        if self.entries.get(key) is entry:
            del self.entries[key]

    def release(self, key: Key, entry: Entry) -> None:
        """Give an entry back. The last user starts its timer, or ends it if it was discarded."""
        # Without `await`: a caller that is cancelled here would leave the others waiting.
        entry.users -= 1
        if entry.users == 0:
            if self.entries.get(key) is entry:
                loop = asyncio.get_running_loop()
                entry.timer = loop.call_later(self.limits.idle_seconds, self.close, key)
            else:
                self.end(entry)
        # Wakes all that wait now. Those who come later wait for the next release.
        self.changed.set()
        self.changed = asyncio.Event()

    def close(self, key: Key) -> None:
        """End the entry of a key unless somebody uses it."""
        entry = self.entries.get(key)
        if entry is None or entry.users:
            return
        del self.entries[key]
        if entry.timer is not None:
            entry.timer.cancel()
        self.end(entry)
