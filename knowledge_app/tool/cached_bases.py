"""The table of knowledge bases, which each process caches for a second."""

from __future__ import annotations

from dataclasses import dataclass

from agentcms.db.cached_table import CachedTable
from knowledge_app.models import KnowledgeBase


@dataclass(frozen=True)
class BaseSummary:
    """The part of a base that its tool needs."""

    key: str
    name: str
    description: str
    owner_id: str
    filterable: tuple[str, ...]
    revision: str


def load_knowledge_bases() -> dict[str, BaseSummary]:
    columns = ("key", "name", "description", "owner_id", "filterable", "updated_at")
    return {
        # Each save sets `updated_at`, by which the table notices a change.
        key: BaseSummary(key, name, text, owner, tuple(keys), f"{key} {updated.isoformat()}")
        for key, name, text, owner, keys, updated in KnowledgeBase.objects.values_list(*columns)
    }


base_table = CachedTable(load_knowledge_bases, lambda base: base.revision)
