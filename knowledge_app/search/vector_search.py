"""The chunks whose vectors are nearest to a vector. numpy compares all that the filter matches."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

from agentcms.vectors.quantize import PackedVector, scores
from agentcms.wire.metadata_filter import Filter
from knowledge_app.models import Chunk, KnowledgeBase, KnowledgeIndex
from knowledge_app.search.filter_queries import to_query

if TYPE_CHECKING:
    from agentcms.vectors.embedders import Rows as Vector

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
    # Equal scores in the order of the chunks, as a database would return them.
    return heapq.nlargest(top_k, scored_rows(rows, vector), key=lambda match: (match.score, -match.chunk_id))


def scored_rows(rows: Any, vector: Vector) -> Iterator[Match]:
    """Yield each chunk with its score, of at most `ROWS_PER_BATCH` rows in memory at a time."""
    columns = rows.order_by().values_list("pk", "scale", "data").iterator(ROWS_PER_BATCH)
    while batch := [*islice(columns, ROWS_PER_BATCH)]:
        values = scores(vector, [PackedVector(scale, data) for _, scale, data in batch])
        yield from (Match(float(score), pk) for (pk, _, _), score in zip(batch, values, strict=True))
