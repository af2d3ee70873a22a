"""A thread-safe in-process cache with a size limit, and the errors of Django's cache.

For values that a process derives from the database: JSON texts, built agents, totals. `cachetools` decides which
values stay. Functions that depend on their arguments alone use `functools.cache` or `functools.lru_cache` instead, and
those without arguments that take long `cache_result`.
Values that several processes share are in Django's cache.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from functools import cache, wraps
from threading import Lock
from typing import Generic, TypeVar

from cachetools import Cache
from redis.exceptions import RedisError

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

# Raised by Django's cache while its server is unavailable.
CACHE_ERRORS = (RedisError, OSError)


class SizeLimitedCache(Generic[K, V]):
    """A lock around a cache of `cachetools`, whose class says which values are removed when it is full.

    `FIFOCache` removes the oldest value and is the fastest to read. `LRUCache` removes the value that was unused for
    the longest time. `TTLCache` also removes values after some seconds. None means missing and is not a value.
    """

    def __init__(self, cache: Cache[K, V], max_value_size: float | None = None) -> None:
        """Use this cache. Values over `max_value_size`, by default the size of the cache, are not stored."""
        self._cache = cache
        self._max_value_size = cache.maxsize if max_value_size is None else max_value_size
        self._lock = Lock()

    def get(self, key: K) -> V | None:
        with self._lock:
            return self._cache.get(key)

    def get_many(self, keys: Iterable[K]) -> dict[K, V]:
        """Return the cached values of these keys, without those that are missing."""
        with self._lock:
            return {key: value for key in keys if (value := self._cache.get(key)) is not None}

    def set(self, key: K, value: V) -> None:
        # `cachetools` raises a ValueError for a value that is larger than the whole cache.
        if self._cache.getsizeof(value) > self._max_value_size:
            return
        with self._lock:
            self._cache[key] = value

    def get_or_create(self, key: K, create: Callable[[], V]) -> V:
        """Return the cached value, or create and store it.

        Two threads that miss at once both create the value: waiting for each other would take longer.
        """
        if (value := self.get(key)) is None:
            value = create()
            self.set(key, value)
        return value

    def clear(self) -> None:
        with self._lock:
            self._cache.clear()

    def __len__(self) -> int:
        return len(self._cache)


def cache_result(function: Callable[[], V]) -> Callable[[], V]:
    """Cache the result of a function without arguments.

    Threads that need the result meanwhile wait for it. With `functools.cache` each of them would compute it.
    """
    lock = Lock()
    cached = cache(function)

    @wraps(function)
    def call() -> V:
        with lock:
            return cached()

    return call
