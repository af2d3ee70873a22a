"""What was worked out before, so much of it as a process may keep."""

from __future__ import annotations

from collections.abc import Hashable
from threading import Lock
from typing import Generic, TypeVar

V = TypeVar("V")


class SizeLimitedCache(Generic[V]):
    """Values up to so many characters in all; the oldest go first, and what is very long is not kept."""

    LONG = 100  # a value may take this part of all

    def __init__(self, characters: int) -> None:
        self.characters = characters
        self._held: dict[Hashable, tuple[V, int]] = {}
        self._used = 0
        self._lock = Lock()

    def get(self, key: Hashable) -> V | None:
        held = self._held.get(key)
        return held[0] if held else None

    def keep(self, key: Hashable, value: V, length: int) -> None:
        if length > self.characters // self.LONG:
            return
        with self._lock:
            _, before = self._held.pop(key, (None, 0))
            self._used -= before
            self._held[key] = value, length
            self._used += length
            while self._used > self.characters:
                self._used -= self._held.pop(next(iter(self._held)))[1]
