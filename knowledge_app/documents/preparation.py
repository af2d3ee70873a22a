"""The text of a document before it is indexed: fetched from its URL, and extracted from its content."""

from __future__ import annotations

import hashlib

from django.db import transaction

from knowledge_app.documents.extraction import extract_text
from knowledge_app.documents.fetching import fetch_document
from knowledge_app.documents.media_types import media_type_of
from knowledge_app.models import Document
from knowledge_app.quotas import require_document_quota


def prepare_document(document: Document) -> None:
    """Fetch the content of a document by URL, and extract the text unless it is that of the content already.

    Only the job of the document stores what it finds. Raise DocumentError and DocumentQuotaExceeded.
    """
    rows = Document.objects.filter(pk=document.pk, job_id=document.job_id)
    content = bytes(document.content)
    if document.source == Document.Source.URL:
        content, declared = fetch_document(document.url)
        media_type = media_type_of(document.url.partition("?")[0], content, declared)
        if media_type != document.media_type:  # the text of the same content is another one
            document.media_type, document.text_hash = media_type, ""
        document.content_hash = hashlib.sha256(content).hexdigest()
        with transaction.atomic():
            require_document_quota(document, len(content))
            document.size = len(content)
            rows.update(media_type=document.media_type, content_hash=document.content_hash, size=document.size)
    if document.text_hash == document.content_hash:
        if document.content:  # it was sent again
            rows.update(content=b"")
        return
    document.text, document.sections = extract_text(content, document.media_type)
    # The content is no longer needed: the text is indexed, also the next time.
    document.text_hash, document.content = document.content_hash, b""
    rows.update(text=document.text, sections=document.sections, text_hash=document.text_hash, content=b"")
