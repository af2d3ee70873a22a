"""Signal receivers of this app."""

from __future__ import annotations

from django.db.models.signals import post_delete, post_save
from django.dispatch import receiver

from knowledge_app.approximate.hnsw import enqueue_refresh
from knowledge_app.models import KnowledgeBase, KnowledgeIndex
from knowledge_app.tool.cached_bases import base_table


@receiver([post_save, post_delete], sender=KnowledgeBase)
def invalidate_bases(**kwargs: object) -> None:
    """Apply a change of knowledge bases in this process at once. Other processes apply it within a second."""
    base_table.invalidate_after_change()


@receiver(post_delete, sender=KnowledgeIndex)
def drop_hnsw_index(instance: KnowledgeIndex, **kwargs: object) -> None:
    """Let a worker drop the HNSW index of a deleted knowledge index."""
    if instance.has_ann_index:
        enqueue_refresh()
