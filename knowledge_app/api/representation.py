"""Knowledge bases, documents and results of searches in the API."""

from __future__ import annotations

from agentcms.wire.json_types import JSONObject
from knowledge_app.models import Document, KnowledgeBase
from knowledge_app.search.retrieval import FoundChunk


def base_body(base: KnowledgeBase, document_count: int, chunk_count: int) -> JSONObject:
    return {
        "id": base.key,
        "name": base.name,
        "description": base.description,
        "ownerId": base.owner_id,
        "embedder": base.embedder,
        "chunkSize": base.chunk_size,
        "chunkOverlap": base.chunk_overlap,
        "filterable": base.filterable,
        "rerank": base.rerank or None,
        "documentCount": document_count,
        "chunkCount": chunk_count,
        "isRebuilding": base.is_outdated,
        "createdAt": base.created_at,
        "updatedAt": base.updated_at,
    }


def document_body(document: Document) -> JSONObject:
    return {
        "id": str(document.pk),
        "name": document.name,
        "source": document.source,
        "url": document.url or None,
        "mediaType": document.media_type or None,
        "hash": document.content_hash or None,
        "size": document.size,
        "metadata": document.metadata,
        "status": document.status,
        "error": document.error or None,
        "chunkCount": document.chunk_count,
        "createdAt": document.created_at,
        "indexedAt": document.indexed_at,
    }


def hit_body(hit: FoundChunk) -> JSONObject:
    return {
        "text": hit.text,
        "score": hit.score,
        "document": hit.document,
        "documentId": str(hit.document_id) if hit.document_id else None,
        "url": hit.url or None,
        "place": hit.place,
        "start": hit.start,
        "end": hit.end,
        "metadata": hit.metadata,
    }
