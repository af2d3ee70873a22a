"""Adding documents to a knowledge base, and deleting them."""

from __future__ import annotations

import hashlib
from urllib.parse import urlsplit

from django.core.exceptions import ValidationError
from django.db import transaction

from access_app.caller import Caller
from agentcms.db.column_values import ColumnValues
from agentcms.outbound.addresses import validate_url
from agentcms.wire.canonical import canonical, json_equal
from agentcms.wire.json_types import JSONObject
from agentcms.wire.validation import find_json_faults
from knowledge_app.documents.errors import DocumentError
from knowledge_app.documents.media_types import EMPTY_MESSAGE, HTML, MARKDOWN, PDF, decode_text, media_type_of
from knowledge_app.documents.size_limit import reject_large_document
from knowledge_app.indexing.jobs import enqueue_document_indexing
from knowledge_app.models import Document, KnowledgeBase
from knowledge_app.models.document import MAX_DOCUMENT_NAME_LENGTH
from knowledge_app.quotas import require_document_quota

MAX_METADATA_LENGTH = 4000  # characters of JSON
MAX_URL_LENGTH = 2000


def add_content(
    base: KnowledgeBase,
    name: str,
    content: bytes,
    *,
    metadata: JSONObject | None = None,
    media_type: str = "",
    source: str = Document.Source.FILE,
    user: Caller | None = None,
) -> Document:
    """Add a document, or replace the one of this name, and index it in a job.

    Raise DocumentError, DocumentQuotaExceeded and NotFound. An equal document that is indexed already is left as it
    is. Without `metadata`, a document keeps its own.
    """
    name = checked_name(name)
    reject_empty(content)
    reject_large_document(len(content))
    if not (media_type and source == Document.Source.TEXT):  # a pasted text is Markdown, whatever its name is
        media_type = media_type_of(name, content, media_type)
    reject_unreadable(content, media_type)
    fields = {
        "source": source,
        "url": "",
        "media_type": media_type,
        "content": content,
        "content_hash": hashlib.sha256(content).hexdigest(),
        "size": len(content),
    }
    return _store(base, name, fields, metadata, user)


def add_text(
    base: KnowledgeBase, name: str, text: str, *, metadata: JSONObject | None = None, user: Caller | None = None
) -> Document:
    """Add a text, which may have Markdown. Raise DocumentError and DocumentQuotaExceeded."""
    if not text.strip():
        raise DocumentError("The text is blank. Enter at least a word.")
    return add_content(
        base, name, text.encode(), metadata=metadata, media_type=MARKDOWN, source=Document.Source.TEXT, user=user
    )


def add_url(
    base: KnowledgeBase,
    url: str,
    *,
    name: str = "",
    metadata: JSONObject | None = None,
    user: Caller | None = None,
) -> Document:
    """Add the document at a URL, which a job fetches.

    Raise DocumentError for a URL that may not be reached, and DocumentQuotaExceeded.
    """
    if len(url) > MAX_URL_LENGTH:
        raise DocumentError(f"The URL has more than {MAX_URL_LENGTH} characters.")
    try:
        validate_url(url)
    except ValidationError as error:
        raise DocumentError(" ".join(error.messages)) from None
    parts = urlsplit(url)
    name = checked_name(name or f"{parts.hostname}{parts.path}".rstrip("/")[:MAX_DOCUMENT_NAME_LENGTH])
    return _store(base, name, {"source": Document.Source.URL, "url": url}, metadata, user)


def _store(
    base: KnowledgeBase, name: str, fields: ColumnValues, metadata: JSONObject | None, user: Caller | None
) -> Document:
    if metadata is not None:
        reject_invalid_metadata(metadata)
    with transaction.atomic():
        # Lock the base: two uploads of one name would otherwise both create it.
        KnowledgeBase.objects.get_locked(base.pk)
        document = Document.objects.filter(base=base, name=name).without_content().first()
        if document is None:
            document = Document(base=base, name=name, created_by_name=getattr(user, "username", ""))
        elif is_unchanged(document, fields, metadata):
            return document
        require_document_quota(document, fields.get("size", document.size))
        if fields.get("media_type", document.media_type) != document.media_type:
            document.text_hash = ""  # the text of the same content is another one
        for field, value in fields.items():
            setattr(document, field, value)
        document.metadata = document.metadata if metadata is None else metadata
        document.status, document.error, document.done_chunks = Document.Status.QUEUED, "", 0
        document.save()
        enqueue_document_indexing(document, user)
    return document


def is_unchanged(document: Document, fields: ColumnValues, metadata: JSONObject | None) -> bool:
    """Return whether a document is stored and not failed. That of a URL may have changed there."""
    return (
        document.source == fields["source"] != Document.Source.URL
        and document.status != Document.Status.FAILED
        and document.content_hash == fields["content_hash"]
        and document.media_type == fields["media_type"]
        and (metadata is None or json_equal(document.metadata, metadata))
    )


def checked_name(name: str) -> str:
    """Return the name of a document without blanks around it. Raise DocumentError."""
    name = name.strip()
    if not name or len(name) > MAX_DOCUMENT_NAME_LENGTH or not name.isprintable():
        raise DocumentError(f"The name of a document has 1 to {MAX_DOCUMENT_NAME_LENGTH} printable characters.")
    return name


def reject_empty(content: bytes) -> None:
    """Raise DocumentError for a file without content."""
    if not content:
        raise DocumentError("The file is empty. Add one that has a text.")


def reject_unreadable(content: bytes, media_type: str) -> None:
    """Raise DocumentError for a document that is not text in UTF-8, and for a text that is blank."""
    if media_type != PDF:
        text = decode_text(content)
        if media_type != HTML and not text.strip():
            raise DocumentError(EMPTY_MESSAGE)


def reject_invalid_metadata(metadata: object) -> None:
    """Raise DocumentError for metadata that cannot be stored or is too long."""
    if not isinstance(metadata, dict):
        raise DocumentError('The metadata must be an object, such as {"product": "router"}.')
    if faults := [*find_json_faults(metadata, "metadata")]:
        raise DocumentError(f"{faults[0].field}: {faults[0].message}")
    if len(canonical(metadata)) > MAX_METADATA_LENGTH:
        raise DocumentError(f"The metadata has more than {MAX_METADATA_LENGTH:,} characters.")


def delete_document(document: Document) -> None:
    """Delete a document with its chunks and their vectors. A job that indexes it stops."""
    with transaction.atomic():
        KnowledgeBase.objects.filter(pk=document.base_id).lock()
        # Django loads a row to delete it, here without its content.
        Document.objects.filter(pk=document.pk).only("pk").delete()
