"""The largest document that a knowledge base takes."""

from __future__ import annotations

from django.conf import settings

from knowledge_app.documents.errors import DocumentError


def reject_large_document(size: int) -> None:
    """Raise DocumentError if a document is larger than the limit."""
    limit: int = settings.KNOWLEDGE_MAX_DOCUMENT_BYTES
    if size > limit:
        raise DocumentError(f"The document is larger than {limit // 1024 // 1024} MB. Divide it.")
