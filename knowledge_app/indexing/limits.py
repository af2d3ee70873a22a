"""The limit of chunks of a knowledge base."""

from __future__ import annotations

from agentcms.vectors.pgvector import uses_pgvector
from knowledge_app.documents.errors import DocumentError
from knowledge_app.models import Chunk, Document, KnowledgeIndex

MAX_CHUNKS = 200_000  # of an index: without pgvector, a search reads all of them
LIMIT_MESSAGE = (
    "The knowledge base would have {count:,} chunks. At most {limit:,} can be searched. Divide it into several, which "
    "an agent can search together, or let the operator enable pgvector."
)


def reject_many_chunks(index: KnowledgeIndex, document: Document | None, count: int) -> None:
    """Raise DocumentError if an index would have more chunks than can be searched without pgvector.

    Args:
        document: The document whose chunks will be replaced, if any.
        count: The number of new chunks.
    """
    if uses_pgvector():
        return
    others = Chunk.objects.filter(index=index, is_pending=False)
    if document is not None:
        others = others.exclude(document=document)
    if (total := others.count() + count) > MAX_CHUNKS:
        raise DocumentError(LIMIT_MESSAGE.format(count=total, limit=MAX_CHUNKS))
