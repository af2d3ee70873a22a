"""Indexes of a knowledge base: one that searches read, and others that are built or filled beside it."""

from __future__ import annotations

from typing import ClassVar

from django.db import models
from django.utils import timezone

from agentcms.ids import uuid7
from agentcms.wire.json_types import JSONObject
from knowledge_app.models.knowledge_base import KnowledgeBase


class KnowledgeIndex(models.Model):
    """Vectors of one embedder, and so of one length.

    An index without an embedder has only vectors that callers of the API computed.
    """

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    base = models.ForeignKey(KnowledgeBase, models.CASCADE, related_name="indexes", editable=False)
    name = models.CharField(max_length=128, editable=False)
    embedder = models.CharField(max_length=128, blank=True, default="", editable=False)
    dimensions = models.PositiveIntegerField(default=0, editable=False, help_text="0 until the first vector.")
    chunk_size = models.PositiveIntegerField(default=0, editable=False)
    chunk_overlap = models.PositiveIntegerField(default=0, editable=False)
    is_building = models.BooleanField(default=False, editable=False)
    has_ann_index = models.BooleanField(
        "approximate index", default=False, editable=False, help_text="Whether PostgreSQL has an HNSW index for it."
    )
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    class Meta:
        verbose_name_plural = "knowledge indexes"
        ordering: ClassVar = ["created_at"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["base", "name"], name="knowledge_index_name"),
            models.UniqueConstraint(
                fields=["base"], condition=models.Q(is_building=True), name="knowledge_index_one_building"
            ),
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def settings(self) -> JSONObject:
        """The settings of the base by which its chunks were made."""
        return {"embedder": self.embedder, "chunk_size": self.chunk_size, "chunk_overlap": self.chunk_overlap}
