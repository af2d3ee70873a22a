"""The chunks whose vectors are nearest to a vector: with numpy, or in the database with pgvector."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from agentcms.vectors.quantize import PackedVector, scores
from agentcms.wire.metadata_filter import Filter
from knowledge_app.models import Chunk, KnowledgeBase, KnowledgeIndex
from knowledge_app.search import pgvector
from knowledge_app.search.filter_queries import to_query

if TYPE_CHECKING:
    from knowledge_app.search.pgvector import Vector

ROWS_PER_BATCH = 2000


class Match(NamedTuple):
    """A chunk with its similarity to the query, from -1 to 1."""

    score: float
    chunk_id: int


def find_nearest(
    base: KnowledgeBase, index: KnowledgeIndex, vector: Vector, condition: Filter, top_k: int
) -> list[Match]:
    """Return the nearest chunks of an index, the best first. The owner of the base is part of each query."""
    rows = Chunk.objects.of_base(base, index).filter(to_query(condition))
    if pgvector.is_enabled():
        return [Match(score, pk) for pk, score in pgvector.nearest(rows, index, vector, top_k)]
    # Equal scores in the order of the chunks, as a database would return them.
    return heapq.nlargest(top_k, scored_rows(rows, vector), key=lambda match: (match.score, -match.chunk_id))


def scored_rows(rows: Any, vector: Vector) -> Iterator[Match]:
    """Yield each chunk with its score, of at most `ROWS_PER_BATCH` rows in memory at a time."""
    columns = rows.order_by().values_list("pk", "scale", "data").iterator(ROWS_PER_BATCH)
    while batch := [row for row, _ in zip(columns, range(ROWS_PER_BATCH), strict=False)]:
        values = scores(vector, [PackedVector(scale, data) for _, scale, data in batch])
        yield from (Match(float(score), pk) for (pk, _, _), score in zip(batch, values, strict=True))
