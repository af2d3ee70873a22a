"""A small table of the database that each process caches for a second."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

from cachetools import TLRUCache

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

    def get(self) -> TableContent[CachedRecord]:
        return self._cache.get_or_create("table", self._read)

    def find(self, key: str) -> CachedRecord | None:
        return self.get().records.get(key)

    def revision(self) -> str:
        return self.get().revision

    def reload(self) -> None:
        """Read the table now, for those who need what another process stored within the last second."""
        self._cache.set("table", self._read())

    def invalidate(self) -> None:
        """Remove the table from the cache of this process."""
        self._cache.clear()

    def _read(self) -> TableContent[CachedRecord]:
        read_at = time.monotonic()
        records = self._load()
        revisions = "\n".join(self._revision_of(record) for record in records.values())
        return TableContent(records, hashlib.sha256(revisions.encode()).hexdigest()[:12], read_at)
