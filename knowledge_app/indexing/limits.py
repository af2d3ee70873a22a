"""The limit of chunks of a knowledge base."""

from __future__ import annotations

from knowledge_app.documents.errors import DocumentError
from knowledge_app.models import Chunk, Document, KnowledgeIndex
from knowledge_app.search.pgvector import is_enabled

MAX_CHUNKS = 200_000  # of an index that is searched without pgvector
LIMIT_MESSAGE = (
    "The knowledge base would have {count:,} chunks. Without pgvector, {limit:,} can be searched. Ask the operator of "
    "the server to run manage.py use_pgvector, or divide the knowledge base."
)


def reject_many_chunks(index: KnowledgeIndex, document: Document | None, count: int) -> None:
    """Raise DocumentError if an index would have more chunks than can be searched.

    Args:
        document: The document whose chunks will be replaced, if any.
        count: The number of new chunks.
    """
    if is_enabled():
        return
    others = Chunk.objects.filter(index=index, is_pending=False)
    if document is not None:
        others = others.exclude(document=document)
    if (total := others.count() + count) > MAX_CHUNKS:
        raise DocumentError(LIMIT_MESSAGE.format(count=total, limit=MAX_CHUNKS))
