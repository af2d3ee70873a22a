"""The chunks whose vectors are nearest to a vector. numpy compares all that the filter matches."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from agentcms.db.raw_rows import iterate_raw_rows
from agentcms.vectors.quantize import scores
from agentcms.wire.metadata_filter import Filter
from knowledge_app.models import Chunk, KnowledgeBase, KnowledgeIndex
from knowledge_app.search.filter_queries import to_query

if TYPE_CHECKING:
    from django.db.models import QuerySet

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
    return heapq.nsmallest(
        top_k, best_of_batches(rows, vector, top_k), key=lambda match: (-match.score, match.chunk_id)
    )


def best_of_batches(rows: QuerySet[Chunk], vector: Vector, top_k: int) -> Iterator[Match]:
    """Yield the best `top_k` chunks of each batch. Vectors of another length cannot be compared and are left out."""
    import numpy as np

    columns = rows.order_by().values_list("pk", "scale", "data")
    for batch in iterate_raw_rows(columns, ROWS_PER_BATCH):
        if comparable := [row for row in batch if len(row[2]) == vector.size]:
            chunk_ids, scales, data = zip(*comparable, strict=True)
            values = scores(vector[None], scales, data)
            for position in np.lexsort((chunk_ids, -values))[:top_k]:
                yield Match(float(values[position]), chunk_ids[position])
