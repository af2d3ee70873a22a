"""A small table of the database that each process caches for a second."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from threading import Lock
from typing import Generic, TypeVar

from cachetools import TLRUCache
from django.db import transaction

from agentcms.cache import SizeLimitedCache

CachedRecord = TypeVar("CachedRecord")


@dataclass(frozen=True)
class TableContent(Generic[CachedRecord]):
    """All records by key. `revision` changes whenever any of them changes."""

    records: Mapping[str, CachedRecord]
    revision: str
    read_at: float  # of the monotonic clock


class CachedTable(Generic[CachedRecord]):
    """The records of a table by key. They are at most a second old, counted from the beginning of their reading."""

    def __init__(
        self,
        load: Callable[[], Mapping[str, CachedRecord]],
        revision_of: Callable[[CachedRecord], str],
        seconds: float = 1.0,
    ) -> None:
        """Read the table by `load`. `revision_of` returns a text that changes with a record."""
        self._load = load
        self._revision_of = revision_of
        self._cache: SizeLimitedCache[str, TableContent[CachedRecord]] = SizeLimitedCache(
            TLRUCache(1, lambda key, content, now: content.read_at + seconds, time.monotonic)
        )
        self._lock = Lock()
        self._valid_from = 0.0  # of the monotonic clock; what was read before is outdated

    def get(self) -> TableContent[CachedRecord]:
        return self.find_cached() or self._store(self._read(), 0.0)

    def find_cached(self) -> TableContent[CachedRecord] | None:
        """Return the table if this process has read it lately, without a query."""
        return self._cache.get("table")

    def find(self, key: str) -> CachedRecord | None:
        return self.get().records.get(key)

    def revision(self) -> str:
        return self.get().revision

    def reload(self) -> None:
        """Read the table now, for those who need what another process stored within the last second."""
        # What a slower thread began to read before this is outdated, and must not replace it in the cache.
        content = self._read()
        self._store(content, content.read_at)

    def invalidate(self) -> None:
        """Remove the table from the cache of this process."""
        with self._lock:
            self._valid_from = time.monotonic()
            self._cache.clear()

    def invalidate_after_change(self) -> None:
        """Invalidate the table now, and again when the current transaction is committed.

        Until then other threads still read, and cache, the rows without the change.
        """
        self.invalidate()
        transaction.on_commit(self.invalidate)

    def _store(self, content: TableContent[CachedRecord], valid_from: float) -> TableContent[CachedRecord]:
        """Cache the table and return it. What was read before `valid_from`, and ends later, is not cached."""
        with self._lock:
            self._valid_from = max(self._valid_from, valid_from)
            if content.read_at >= self._valid_from:
                self._cache.set("table", content)
        return content

    def _read(self) -> TableContent[CachedRecord]:
        # Before the query: a change that is committed while it runs may be missing from its result.
        read_at = time.monotonic()
        records = self._load()
        revisions = "\n".join(self._revision_of(record) for record in records.values())
        return TableContent(records, hashlib.sha256(revisions.encode()).hexdigest()[:12], read_at)
