"""The chunks whose vectors are nearest to a vector. numpy compares all that the filter matches, or pgvector does."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from django.db import connection, transaction

from agentcms.db.statements.raw_rows import iterate_raw_rows
from agentcms.vectors.pgvector import ByteLength, CosineDistance, similarity_of_distance, uses_pgvector
from agentcms.vectors.quantize import similarity_scores
from agentcms.wire.metadata_filter import Filter
from knowledge_app.models import Chunk, KnowledgeBase, KnowledgeIndex
from knowledge_app.search.filter_queries import to_query

if TYPE_CHECKING:
    from django.db.models import QuerySet

    from agentcms.vectors.embedders import Rows as Vector

ROWS_PER_BATCH = 2000
CANDIDATES_OF_HNSW = 100  # `hnsw.ef_search`: with more candidates, a search is more exact and takes longer


class Match(NamedTuple):
    """A chunk with its similarity to the query, from -1 to 1."""

    score: float
    chunk_id: int


def find_nearest(
    base: KnowledgeBase, index: KnowledgeIndex, vector: Vector, condition: Filter, top_k: int
) -> list[Match]:
    """Return the nearest chunks of an index, the best first. The owner of the base is part of each query."""
    rows = Chunk.objects.of_base(base, index).filter(to_query(condition))
    if not uses_pgvector():
        # Equal scores in the order of the chunks, as a database would return them.
        batches = best_of_batches(rows, vector, top_k)
        return heapq.nsmallest(top_k, batches, key=lambda match: (-match.score, match.chunk_id))
    if index.has_ann_index and index.dimensions == vector.size:
        matches = nearest_by_hnsw(rows, vector, top_k)
        if len(matches) == top_k:  # a filter may leave so little that the index does not find it
            return matches
    return nearest_chunks_in_database(rows, vector, top_k)


def nearest_chunks_in_database(rows: QuerySet[Chunk], vector: Vector, top_k: int) -> list[Match]:
    """Return the nearest chunks. PostgreSQL compares all of them."""
    comparable = rows.annotate(length=ByteLength("data")).filter(length=vector.size)
    ordered = comparable.annotate(distance=CosineDistance(vector[None])).order_by("distance", "pk")
    return [
        Match(similarity_of_distance(distance), pk) for pk, distance in ordered.values_list("pk", "distance")[:top_k]
    ]


def nearest_by_hnsw(rows: QuerySet[Chunk], vector: Vector, top_k: int) -> list[Match]:
    """Return the nearest chunks, with the approximate HNSW index of PostgreSQL, which may rarely miss one.

    PostgreSQL goes on with the scan of the index until enough chunks fit the filter.
    """
    distance = CosineDistance(vector[None], vector.size)
    ordered = rows.annotate(distance=distance).order_by("distance").values_list("pk", "distance")
    # `SET LOCAL` has no effect outside of a transaction.
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SET LOCAL hnsw.iterative_scan = strict_order")
        cursor.execute(f"SET LOCAL hnsw.ef_search = {CANDIDATES_OF_HNSW}")
        return [Match(similarity_of_distance(distance), pk) for pk, distance in ordered[:top_k]]


def best_of_batches(rows: QuerySet[Chunk], vector: Vector, top_k: int) -> Iterator[Match]:
    """Yield the best `top_k` chunks of each batch. Vectors of another length cannot be compared and are left out."""
    import numpy as np

    columns = rows.order_by().values_list("pk", "scale", "data")
    for batch in iterate_raw_rows(columns, ROWS_PER_BATCH):
        if comparable := [row for row in batch if len(row[2]) == vector.size]:
            chunk_ids, scales, data = zip(*comparable, strict=True)
            values = similarity_scores(vector[None], scales, data)
            # numpy sorts by the last key first.
            for position in np.lexsort((chunk_ids, -values))[:top_k]:
                yield Match(float(values[position]), chunk_ids[position])
