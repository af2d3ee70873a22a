"""Chunks: the passages of documents that searches find, each with its vector."""

from __future__ import annotations

from typing import ClassVar, Self

from django.db import models
from django.db.models import F, Q

from knowledge_app.models.document import Document
from knowledge_app.models.knowledge_base import KnowledgeBase
from knowledge_app.models.knowledge_index import KnowledgeIndex

MAX_CHUNK_KEY_LENGTH = 128


class ChunkQuerySet(models.QuerySet["Chunk"]):
    def of_base(self, base: KnowledgeBase, index: KnowledgeIndex | None = None) -> Self:
        """Filter to what searches of a base may find: the complete chunks of an index that its owner has."""
        # The base and its owner, too, so that a wrong index shows nothing of another team.
        return self.filter(
            index=index or base.index,
            index__base=base,
            index__base__owner_id=base.owner_id,
            is_pending=False,
        )


class Chunk(models.Model):
    """A passage of a document with its vector, in eight bits per number with one scale.

    `start` and `end` are positions in the text of the document. A pending chunk belongs to a document that is being
    indexed; searches do not find it. A chunk without a document was sent to the API with its vector, under `key`.
    """

    index = models.ForeignKey(KnowledgeIndex, models.CASCADE, related_name="chunks", editable=False)
    document = models.ForeignKey(Document, models.CASCADE, null=True, related_name="chunks", editable=False)
    key = models.CharField(max_length=MAX_CHUNK_KEY_LENGTH, blank=True, default="", editable=False)
    number = models.PositiveIntegerField(default=0, editable=False)
    text = models.TextField(blank=True, default="", editable=False)
    text_hash = models.CharField(max_length=64, editable=False)
    start = models.PositiveIntegerField(default=0, editable=False)
    end = models.PositiveIntegerField(default=0, editable=False)
    place = models.CharField(max_length=200, blank=True, default="", editable=False)
    # A copy of that of the document: filters need no join, and chunks without a document have their own.
    metadata = models.JSONField(default=dict, editable=False)
    embedder = models.CharField(max_length=128, blank=True, default="", editable=False)
    scale = models.FloatField(editable=False)
    data = models.BinaryField(editable=False)
    is_pending = models.BooleanField(default=False, editable=False)

    objects = ChunkQuerySet.as_manager()

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["index", "document", "number", "is_pending"],
                condition=Q(document__isnull=False),
                name="chunk_number",
            ),
            models.UniqueConstraint(
                fields=["index", "key"], condition=Q(document__isnull=True), name="chunk_key_without_document"
            ),
            models.CheckConstraint(condition=Q(end__gte=F("start")), name="chunk_end_after_start"),
        ]
        indexes: ClassVar = [models.Index(fields=["index", "text_hash"], name="chunk_text_hash")]

    def __str__(self) -> str:
        return f"{self.document_id or self.key} {self.number}"
