"""The lengths of the instructions of versions, kept in memory by the hash of their snapshot."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from cachetools import LRUCache
from django.db.models import JSONField
from django.db.models.fields.json import KT
from django.db.models.functions import Cast, Length

from agentcms.cache import SizeLimitedCache
from agents_app.models import Agent

_sizes: SizeLimitedCache[str, int] = SizeLimitedCache(LRUCache(20_000))


def instruction_sizes(agent: Agent, hashes: Mapping[int, str]) -> Sequence[tuple[int, int]]:
    """Return number and characters of the instructions of versions, given by number and hash, in the same order."""
    sizes = _sizes.get_many(hashes.values())
    if missing := [number for number, text_hash in hashes.items() if text_hash not in sizes]:
        for number, size in measure_sizes(agent, missing):
            sizes[hashes[number]] = size
            _sizes.set(hashes[number], size)
    return [(number, sizes[text_hash]) for number, text_hash in hashes.items() if text_hash in sizes]


def measure_sizes(agent: Agent, numbers: Collection[int]) -> Sequence[tuple[int, int]]:
    """Let the database parse the snapshots of these versions. Return number and characters of the instructions."""
    rows = agent.versions.filter(version_number__in=numbers).order_by()
    size = Length(KT("configuration__instructions"))
    columns = rows.annotate(configuration=Cast("snapshot_text", JSONField())).values_list("version_number", size)
    return [(number, length or 0) for number, length in columns]
