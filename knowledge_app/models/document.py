"""The documents of a knowledge base, and which of them an index has."""

from __future__ import annotations

from typing import ClassVar, Self

from django.db import models
from django.utils import timezone

from agentcms.ids import uuid7
from agentcms.wire.json_types import JSONValue
from knowledge_app.models.knowledge_base import KnowledgeBase
from knowledge_app.models.knowledge_index import KnowledgeIndex

MAX_DOCUMENT_NAME_LENGTH = 200


class DocumentQuerySet(models.QuerySet["Document"]):
    def without_content(self) -> Self:
        """Leave out the long columns. Lists use this."""
        return self.defer("content", "text", "sections")

    def waiting(self) -> Self:
        """Filter to the documents that are not indexed yet."""
        return self.filter(status__in=[Document.Status.QUEUED, Document.Status.INDEXING])


class Document(models.Model):
    """A document: its content as uploaded, and the text that was extracted from it.

    `content_hash` is that of the content. `text` is blank until a job extracted it. `sections` has the places that
    citations name, each with the position in the text at which it begins.
    """

    class Source(models.TextChoices):
        FILE = "file", "File"
        TEXT = "text", "Text"
        URL = "url", "URL"

    class Status(models.TextChoices):
        QUEUED = "queued", "Waiting"
        INDEXING = "indexing", "Indexing"
        READY = "ready", "Ready"
        FAILED = "failed", "Failed"

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    base = models.ForeignKey(KnowledgeBase, models.CASCADE, related_name="documents", editable=False)
    name = models.CharField(max_length=MAX_DOCUMENT_NAME_LENGTH)
    source = models.CharField(max_length=8, choices=Source, editable=False)
    url = models.CharField("URL", max_length=2000, blank=True, default="", editable=False)
    media_type = models.CharField(max_length=100, editable=False)
    content_hash = models.CharField(max_length=64, blank=True, default="", editable=False)
    size = models.PositiveIntegerField(default=0, editable=False, help_text="Of the content, in bytes.")
    text_hash = models.CharField(
        max_length=64, blank=True, default="", editable=False, help_text="The content from which the text comes."
    )
    metadata = models.JSONField(default=dict, blank=True)
    status = models.CharField(max_length=8, choices=Status, default=Status.QUEUED, editable=False)
    error = models.TextField(blank=True, default="", editable=False)
    chunk_count = models.PositiveIntegerField(default=0, editable=False)
    done_chunks = models.PositiveIntegerField(default=0, editable=False, help_text="While it is indexed.")
    job_id = models.UUIDField(null=True, editable=False, help_text="The only job that may index the document.")
    # No foreign key: the name stays when the account is deleted.
    created_by_name = models.CharField(max_length=150, blank=True, default="", editable=False)
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    indexed_at = models.DateTimeField(null=True, editable=False)
    # The last columns, because SQLite reads long values to reach the columns behind them.
    sections = models.JSONField(default=list, editable=False)
    text = models.TextField(blank=True, default="", editable=False)
    content = models.BinaryField(default=b"", editable=False)

    objects = DocumentQuerySet.as_manager()

    class Meta:
        ordering: ClassVar = ["name"]
        constraints: ClassVar = [models.UniqueConstraint(fields=["base", "name"], name="document_name")]
        indexes: ClassVar = [
            models.Index(fields=["status"], name="document_status"),
            models.Index(fields=["base", "size"], name="document_size_of_base"),  # a sum that reads no content
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def metadata_rows(self) -> list[tuple[str, JSONValue]]:
        """The sorted keys and values of the metadata. In a template, `metadata.items` could be the value of a key."""
        return sorted(self.metadata.items())

    @property
    def is_waiting(self) -> bool:
        return self.status in (self.Status.QUEUED, self.Status.INDEXING)


class IndexedDocument(models.Model):
    """A document whose chunks an index has, with the hash of what they were made from."""

    index = models.ForeignKey(KnowledgeIndex, models.CASCADE, related_name="indexed_documents", editable=False)
    document = models.ForeignKey(Document, models.CASCADE, related_name="indexed", editable=False)
    source_hash = models.CharField(max_length=64, editable=False)

    class Meta:
        constraints: ClassVar = [models.UniqueConstraint(fields=["index", "document"], name="indexed_document")]

    def __str__(self) -> str:
        return f"{self.document_id} in {self.index_id}"
