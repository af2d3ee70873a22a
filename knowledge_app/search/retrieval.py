"""Searches of a knowledge base by a question."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING
from uuid import UUID

from agentcms.errors import Unavailable
from agentcms.vectors import EmbedderFailed, find_embedder
from agentcms.wire.json_types import JSONObject
from agentcms.wire.metadata_filter import EVERYTHING, Filter
from knowledge_app.models import Chunk, KnowledgeBase, KnowledgeIndex
from knowledge_app.search.rerank import CANDIDATES, rerank_hits
from knowledge_app.search.vector_search import find_nearest

if TYPE_CHECKING:
    from agentcms.vectors.embedders import Rows as Vector

DEFAULT_TOP_K, MAX_TOP_K = 5, 20
MAX_QUERY_LENGTH = 4000  # characters
SCORE_DECIMALS = 4


@dataclass(frozen=True)
class FoundChunk:
    """A chunk that a search found, with the document and the place in it."""

    chunk_id: int
    key: str  # of a chunk that was sent with its vector
    document_id: UUID | None
    document: str
    url: str
    place: str
    start: int
    end: int
    text: str
    score: float
    metadata: JSONObject


def search_base(
    base: KnowledgeBase,
    query: str,
    *,
    top_k: int = DEFAULT_TOP_K,
    condition: Filter = EVERYTHING,
    min_score: float | None = None,
) -> list[FoundChunk]:
    """Return the chunks that fit a question best, the best first. Raise Unavailable if the embedder fails.

    Chunks that are less similar to the question than `min_score` are left out, before a reranker gives other scores.
    """
    index = base.live_index
    try:
        vector = find_embedder(index.embedder).embed([query], "query")[0]
    except EmbedderFailed as error:
        raise Unavailable(f"The search failed: {error}") from None
    count = max(CANDIDATES, top_k) if base.rerank else top_k
    hits = load_hits(base, index, vector, condition, count, min_score)
    if not hits and (rebuilt := find_rebuilt(base, index)) is not None:
        return search_base(rebuilt, query, top_k=top_k, condition=condition, min_score=min_score)
    return rerank_hits(base.rerank, query, hits)[:top_k] if base.rerank else hits


def find_rebuilt(base: KnowledgeBase, index: KnowledgeIndex) -> KnowledgeBase | None:
    """Return a base with its live index if another one took the place of this index meanwhile, or None."""
    if KnowledgeIndex.objects.filter(pk=index.pk).exists():
        return None
    return KnowledgeBase.objects.exclude(index=None).select_related("index").filter(pk=base.pk).first()


def load_hits(
    base: KnowledgeBase,
    index: KnowledgeIndex,
    vector: Vector,
    condition: Filter,
    top_k: int,
    min_score: float | None = None,
) -> list[FoundChunk]:
    """Return the nearest chunks with their texts and documents. Leave out those with less than a minimum score."""
    matches = find_nearest(base, index, vector, condition, top_k)
    if min_score is not None:
        # As people see it: a passage whose score is the minimum is not left out for its further digits.
        matches = [match for match in matches if rounded_score(match.score) >= min_score]
    rows = Chunk.objects.of_base(base, index).filter(pk__in=[match.chunk_id for match in matches])
    # Not all of a document: its text may have millions of characters.
    columns = ("document__name", "document__url", "place", "start", "end", "text", "metadata", "key")
    chunks = {row.pk: row for row in rows.select_related("document").only("document_id", *columns)}
    return [build_hit(chunks[match.chunk_id], match.score) for match in matches if match.chunk_id in chunks]


def rounded_score(score: float) -> float:
    return round(score, SCORE_DECIMALS)


def build_hit(chunk: Chunk, score: float) -> FoundChunk:
    document = chunk.document
    return FoundChunk(
        chunk_id=chunk.pk,
        key=chunk.key,
        document_id=chunk.document_id,
        document=document.name if document else chunk.key,
        url=document.url if document else "",
        place=chunk.place,
        start=chunk.start,
        end=chunk.end,
        text=chunk.text,
        score=rounded_score(score),
        metadata=chunk.metadata,
    )
