"""Changes between versions, kept in memory.

The hash of a snapshot identifies its content, so what was derived from a snapshot stays true. Texts, which may be
large, are loaded and parsed only for pairs that are not in memory.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple
from uuid import UUID

from cachetools import LRUCache

from agentcms.cache import SizeLimitedCache
from versions_app.compare.change_summary import FieldSummary, summarize_changes
from versions_app.models import AgentVersion

MAX_CACHED_PAIRS = 5_000  # of about 1 kB


class SnapshotId(NamedTuple):
    """The ID of a version with the hash of its snapshot."""

    version: UUID
    hash: str


class VersionPair(NamedTuple):
    """A version and the one that it is compared with."""

    before: SnapshotId
    after: SnapshotId

    @property
    def hashes(self) -> tuple[str, str]:
        return self.before.hash, self.after.hash


_changes: SizeLimitedCache[tuple[str, str], Sequence[FieldSummary]] = SizeLimitedCache(LRUCache(MAX_CACHED_PAIRS))


def snapshot_id(version: AgentVersion) -> SnapshotId:
    return SnapshotId(version.pk, version.snapshot_hash)


def find_changes(pairs: Collection[VersionPair]) -> Mapping[VersionPair, Sequence[FieldSummary]]:
    """Return the changes of each pair, without the pairs of which a version was deleted meanwhile."""
    cached = _changes.get_many({pair.hashes for pair in pairs})
    missing = [pair for pair in pairs if pair.hashes not in cached]
    snapshots = load_snapshots({end.version for pair in missing for end in pair})
    for before, after in missing:
        if before.version in snapshots and after.version in snapshots:
            changes = tuple(summarize_changes(snapshots[before.version], snapshots[after.version]))
            cached[before.hash, after.hash] = changes
            _changes.set((before.hash, after.hash), changes)
    return {pair: cached[pair.hashes] for pair in pairs if pair.hashes in cached}


def load_snapshots(versions: Collection[UUID]) -> dict[UUID, Any]:
    """Return the snapshots of versions by their ID, with one query, or none without versions."""
    if not versions:
        return {}
    rows = AgentVersion.objects.filter(pk__in=versions).order_by().values_list("pk", "snapshot_text")
    return {pk: json.loads(text) for pk, text in rows}
