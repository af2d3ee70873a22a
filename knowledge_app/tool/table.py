"""The table of knowledge bases, which each process caches for a second."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass

from cachetools import TTLCache

from agentcms.cache import SizeLimitedCache
from knowledge_app.models import KnowledgeBase

CACHE_SECONDS = 1.0


@dataclass(frozen=True)
class BaseSummary:
    """The part of a base that its tool needs."""

    key: str
    name: str
    description: str
    owner_id: str
    filterable: tuple[str, ...]
    revision: str


@dataclass(frozen=True)
class BaseTable:
    """All bases by key. `revision` changes whenever any of them changes."""

    bases: Mapping[str, BaseSummary]
    revision: str


def load_table() -> BaseTable:
    columns = ("key", "name", "description", "owner_id", "filterable", "updated_at")
    bases = {
        key: BaseSummary(key, name, text, owner, tuple(keys), f"{key} {updated.isoformat()}")
        for key, name, text, owner, keys, updated in KnowledgeBase.objects.values_list(*columns)
    }
    revisions = "\n".join(base.revision for base in bases.values())
    return BaseTable(bases, hashlib.sha256(revisions.encode()).hexdigest()[:12])


_tables: SizeLimitedCache[str, BaseTable] = SizeLimitedCache(TTLCache(1, CACHE_SECONDS))


def get_table() -> BaseTable:
    """Return the table, which is at most a second old."""
    return _tables.get_or_create("table", load_table)


def revision() -> str:
    return get_table().revision


def invalidate() -> None:
    """Remove the table from the cache of this process."""
    _tables.clear()
