"""The text of a document before it is indexed: fetched from its URL, and extracted from its content."""

from __future__ import annotations

import hashlib

from django.db import transaction

from agentcms.db.column_values import ColumnValues
from knowledge_app.documents.extraction import extract_text
from knowledge_app.documents.fetching import fetch_document
from knowledge_app.documents.media_types import media_type_of
from knowledge_app.indexing.document_chunks import Fence
from knowledge_app.models import Document
from knowledge_app.quotas import require_document_quota


def prepare_document(document: Document, fence: Fence) -> None:
    """Fetch the content of a document by URL, and extract the text unless it is that of the content already.

    Only the job of the document stores what it finds. Raise DocumentError, DocumentQuotaExceeded, and what the fence
    raises.
    """
    content = fetch_content(document, fence) if document.source == Document.Source.URL else bytes(document.content)
    if document.text_hash == document.content_hash:
        if document.content:  # it was sent again
            document.content = b""
            store_columns(document, fence, "content")
        return
    document.text, document.sections = extract_text(content, document.media_type)
    # The content is no longer needed: the text is indexed, also the next time.
    document.text_hash, document.content = document.content_hash, b""
    store_columns(document, fence, "text", "sections", "text_hash", "content")


def fetch_content(document: Document, fence: Fence) -> bytes:
    """Return what the URL of a document has, and store its size. Raise DocumentError and DocumentQuotaExceeded."""
    content, declared = fetch_document(document.url)
    media_type = media_type_of(document.url.partition("?")[0], content, declared)
    if media_type != document.media_type:  # the text of the same content is another one
        document.media_type, document.text_hash = media_type, ""
    document.content_hash = hashlib.sha256(content).hexdigest()
    with transaction.atomic():
        fence()
        require_document_quota(document, len(content))
        document.size = len(content)
        # With the hash of the text: after a death before the extraction, the text of the other format would stay.
        store_columns(document, fence, "media_type", "content_hash", "size", "text_hash")
    return content


def store_columns(document: Document, fence: Fence, *names: str) -> None:
    """Store columns of a document, unless the fence says that its job may no longer write it."""
    values: ColumnValues = {name: getattr(document, name) for name in names}
    with transaction.atomic():
        # It locks the base, as everybody does who replaces a document. So nobody replaces half of what is stored here.
        fence()
        Document.objects.filter(pk=document.pk).update(**values)
