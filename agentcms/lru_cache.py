"""Agents that were built, kept in this process for the next run."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from threading import Lock
from typing import Generic, TypeVar

Thing = TypeVar("Thing")


class Kept(Generic[Thing]):
    """The things that were asked for last, each under everything that it was made of: nothing ever grows stale."""

    def __init__(self, most: int) -> None:
        self.most = most
        self._things: OrderedDict[Hashable, Thing] = OrderedDict()
        self._lock = Lock()

    def get(self, key: Hashable, make: Callable[[], Thing]) -> Thing:
        with self._lock:
            if key in self._things:
                self._things.move_to_end(key)
                return self._things[key]
        thing = make()  # two who come at once both make it, which costs less than to wait for one another
        with self._lock:
            self._things[key] = thing
            while len(self._things) > self.most:
                self._things.popitem(last=False)
        return thing

    def __len__(self) -> int:
        return len(self._things)
