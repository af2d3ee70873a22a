"""Vectors that callers of the API computed, in indexes beside the documents or among them."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from django.db import transaction

from agentcms.errors import BadRequest, Conflict
from agentcms.ids import uuid7
from agentcms.vectors import UnknownEmbedder, find_embedder
from agentcms.vectors.quantize import PackedVector, pack_vector, unpack_vector
from agentcms.wire.canonical import canonical
from agentcms.wire.json_types import JSONObject
from agentcms.wire.metadata_filter import Filter
from knowledge_app.approximate.hnsw import enqueue_if_large
from knowledge_app.indexing.limits import reject_many_chunks
from knowledge_app.models import Chunk, KnowledgeBase, KnowledgeIndex
from knowledge_app.quotas import require_vector_quota
from knowledge_app.search.retrieval import load_hits

if TYPE_CHECKING:
    from agentcms.vectors.embedders import Rows as Vector

MAX_INDEXES = 20  # of a base
MAX_SENT_LENGTH = 16_000  # characters of JSON, with the text
MAX_ANSWERED_NUMBERS = 500_000  # of the vectors in an answer: 5 MB of JSON
DECIMALS = 6  # of these numbers, more than a vector keeps in 8 bits for each
TEXT_MESSAGE = "Among the documents each vector needs its text: send it as metadata.text."


def index_details(index: KnowledgeIndex) -> JSONObject:
    chunks = Chunk.objects.filter(index=index, is_pending=False)
    return {"dimension": dimension_of(index), "count": chunks.count(), "metric": "cosine"}


def dimension_of(index: KnowledgeIndex) -> int:
    """Return the length of the vectors of an index, or 0 if only its first vector decides."""
    if index.dimensions:
        return index.dimensions
    data = Chunk.objects.filter(index=index).values_list("data", flat=True).first()
    return dimension_of_embedder(index.embedder) if data is None else len(bytes(data))


def dimension_of_embedder(name: str) -> int:
    """Return the length of the vectors of an embedder, or 0 if it is not known before the first one."""
    try:
        return find_embedder(name).dimensions if name else 0
    except UnknownEmbedder:
        return 0


def create_index(base: KnowledgeBase, name: str, dimension: int) -> None:
    """Create an index. Repeating it does nothing. Raise Conflict for another dimension, or for too many."""
    with transaction.atomic():
        KnowledgeBase.objects.get_locked(base.pk)
        index = KnowledgeIndex.objects.filter(base=base, name=name).first()
        if index is None and base.indexes.count() >= MAX_INDEXES:
            raise Conflict(f"A knowledge base has at most {MAX_INDEXES} indexes. Delete one first.")
        if index is None:
            index = KnowledgeIndex.objects.create(base=base, name=name, dimensions=dimension)
        if (current := dimension_of(index)) not in (0, dimension):
            raise Conflict(f"The index {name} exists with the dimension {current}. Choose another name.")


def delete_index(base: KnowledgeBase, index: KnowledgeIndex) -> None:
    """Delete an index with its vectors. Raise Conflict for that of the documents."""
    with transaction.atomic():
        # As it is now: a rebuild may have let this index take the place of the one that the base had.
        if index.pk == KnowledgeBase.objects.get_locked(base.pk).index_id:
            raise Conflict(f"The index {index.name} has the documents. Delete the knowledge base instead.")
        index.delete()


def query_vector(index: KnowledgeIndex, numbers: Sequence[float]) -> Vector:
    """Return the vector of a search with length 1. Raise BadRequest for another dimension than that of the index."""
    reject_other_dimension(index, dimension_of(index), numbers, "queryVector")
    return normalize_vector(numbers, "queryVector")


def reject_other_dimension(index: KnowledgeIndex, dimension: int, numbers: Sequence[float], path: str) -> None:
    """Raise BadRequest for a vector of another dimension than that of an index, unless this is still 0."""
    if dimension not in (0, len(numbers)):
        message = f"The vector has {len(numbers)} numbers. Those of the index {index.name} have {dimension}."
        raise BadRequest("request body", [(path, message)])


def reject_other_dimensions(index: KnowledgeIndex, vectors: Sequence[Sequence[float]]) -> None:
    """Raise BadRequest for the first of several vectors of another dimension than that of an index."""
    dimension = dimension_of(index)
    for number, vector in enumerate(vectors):
        reject_other_dimension(index, dimension, vector, f"vectors[{number}]")


def normalize_vector(numbers: Sequence[float], path: str) -> Vector:
    """Return a vector with length 1. Raise BadRequest for one without a direction."""
    import numpy as np

    largest = max(map(abs, numbers))
    if not math.isfinite(largest) or largest == 0:
        raise BadRequest("request body", [(path, "A vector needs a number that is not 0.")])
    # Divided first: the squares of large numbers would be too large for 32 bits.
    row = np.asarray([float(number) / largest for number in numbers], np.float32)
    normal: Vector = row / np.linalg.norm(row)
    return normal


def upsert_vectors(
    base: KnowledgeBase,
    index: KnowledgeIndex,
    vectors: Sequence[Sequence[float]],
    metadata: Sequence[JSONObject] | None,
    ids: Sequence[str] | None,
) -> list[str]:
    """Store vectors and return their IDs. Those with a known ID are replaced. Raise BadRequest and DocumentError."""
    keys = keys_of(vectors, metadata, ids)
    members = metadata or [{} for _ in vectors]
    reject_other_dimensions(index, vectors)
    rows = [
        sent_chunk(base, index, key, vector, member, number)
        for number, (key, vector, member) in enumerate(zip(keys, vectors, members, strict=True))
    ]
    if len({len(row.data) for row in rows}) > 1:
        raise BadRequest("request body", [("vectors", "All vectors must have the same number of numbers.")])
    with transaction.atomic():
        lock_index(base, index)
        reject_other_dimensions(index, vectors[:1])  # again: another request may have sent the first one meanwhile
        Chunk.objects.filter(index=index, document=None, key__in=keys).delete()
        reject_many_chunks(index, None, len(rows))
        require_vector_quota(base, len(rows))
        Chunk.objects.bulk_create(rows)
    enqueue_if_large(index)
    return keys


def lock_index(base: KnowledgeBase, index: KnowledgeIndex) -> None:
    """Lock an index for vectors. Raise Conflict if it was deleted or replaced meanwhile."""
    # The base first, as all that lock both: `finish_rebuild` does, and two could wait for each other.
    KnowledgeBase.objects.get_locked(base.pk)
    if KnowledgeIndex.objects.select_for_update().filter(pk=index.pk).first() is None:
        raise Conflict(f"The index {index.name} was deleted or rebuilt meanwhile. Send the vectors again.")


def keys_of(
    vectors: Sequence[Sequence[float]], metadata: Sequence[JSONObject] | None, ids: Sequence[str] | None
) -> list[str]:
    """Return the IDs of vectors, new ones if none are given. Raise BadRequest."""
    for name, values in (("metadata", metadata), ("ids", ids)):
        if values is not None and len(values) != len(vectors):
            raise BadRequest("request body", [(name, f"Send one for each of the {len(vectors)} vectors.")])
    keys = [*ids] if ids is not None else [str(uuid7()) for _ in vectors]
    if len({*keys}) < len(keys):
        raise BadRequest("request body", [("ids", "Send each ID once.")])
    return keys


def reject_large_metadata(metadata: JSONObject, number: int) -> None:
    """Raise BadRequest for metadata that is too long, with the text in it."""
    if len(canonical(metadata)) > MAX_SENT_LENGTH:
        message = f"The metadata of a vector, with its text, has at most {MAX_SENT_LENGTH:,} characters."
        raise BadRequest("request body", [(f"metadata[{number}]", f"{message} Divide the text.")])


def sent_chunk(
    base: KnowledgeBase,
    index: KnowledgeIndex,
    key: str,
    vector: Sequence[float],
    metadata: JSONObject,
    number: int,
) -> Chunk:
    reject_large_metadata(metadata, number)
    text = metadata.get("text", "")
    text = text if isinstance(text, str) else ""
    if index.pk == base.index_id and not text:
        raise BadRequest("request body", [(f"metadata[{number}].text", TEXT_MESSAGE)])
    packed = pack_vector(normalize_vector(vector, f"vectors[{number}]"))
    return Chunk(
        index=index,
        key=key,
        text=text,
        text_hash=hashlib.sha256(f"sent {key} {text}".encode()).hexdigest(),  # not that of a document's chunk
        end=len(text),
        metadata=metadata,
        embedder=index.embedder,
        scale=packed.scale,
        data=packed.data,
    )


def query_index(
    base: KnowledgeBase,
    index: KnowledgeIndex,
    vector: Vector,
    condition: Filter,
    top_k: int,
    *,
    min_score: float | None,
    includes_vector: bool,
) -> list[JSONObject]:
    """Return the nearest vectors as the published client reads them. Raise BadRequest for too many with numbers."""
    if includes_vector:
        reject_large_answer(top_k, vector.size)
    hits = load_hits(base, index, vector, condition, top_k, min_score)
    vectors = stored_vectors([hit.chunk_id for hit in hits]) if includes_vector else {}
    return [
        {
            "id": hit.key or str(hit.chunk_id),
            "score": hit.score,
            "metadata": {**hit.metadata, "text": hit.text, **({"place": hit.place} if hit.place else {})},
            "document": hit.document,
            **({"vector": vectors[hit.chunk_id]} if includes_vector else {}),
        }
        for hit in hits
    ]


def reject_large_answer(top_k: int, dimension: int) -> None:
    """Raise BadRequest if this many vectors with their numbers would make an answer too large."""
    if top_k * dimension > MAX_ANSWERED_NUMBERS:
        most = MAX_ANSWERED_NUMBERS // dimension
        message = f"With includeVector, at most {most:,} vectors of {dimension:,} numbers fit into an answer."
        raise BadRequest("request body", [("topK", f"{message} Lower topK, or leave out includeVector.")])


def stored_vectors(chunk_ids: Sequence[int]) -> dict[int, list[float]]:
    rows = Chunk.objects.filter(pk__in=chunk_ids).values_list("pk", "scale", "data")
    vectors = {pk: unpack_vector(PackedVector(scale, bytes(data))) for pk, scale, data in rows}
    # In 64 bits: of 32 bits, JSON would show all decimals.
    return {pk: vector.astype(float).round(DECIMALS).tolist() for pk, vector in vectors.items()}
