"""Search for messages of similar meaning, in a thread or in all threads of a resource."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count, islice, takewhile
from typing import TYPE_CHECKING, NamedTuple

from django.conf import settings
from django.db.models import QuerySet

from agentcms.db.statements.raw_rows import fetch_raw_rows
from agentcms.vectors import find_embedder
from agentcms.vectors.pgvector import ByteLength, CosineDistance, similarity_of_distance, uses_pgvector
from agentcms.vectors.quantize import similarity_scores
from memory_app.history.turn_markup import is_spoken
from memory_app.models import Message, Vector
from memory_app.recall.parts import cut_parts
from memory_app.recall.surroundings import load_surroundings

if TYPE_CHECKING:
    from agentcms.vectors.embedders import Rows

ROWS_PER_RANKING = 100  # that PostgreSQL returns at once
ROWS_PER_LOOKUP = 8  # few of the ranked messages are known already
MAX_ROWS_PER_LOOKUP = 256
MAX_CANDIDATES = 1000  # that are loaded to find distinct ones, where a thread repeats one message again and again


class FoundMessage(NamedTuple):
    """A message that is similar to a query, from -1 to 1, and its part that is the most similar."""

    message_id: int
    part: int
    score: float


@dataclass(frozen=True)
class RecalledMessage:
    """A message that was found, with its score and the messages before and after it, as `Surroundings` has them."""

    message: Message
    part: int
    score: float
    before: Sequence[Message] = ()
    after: Sequence[Message] = ()


def embed_question(embedder: str, text: str) -> Rows:
    """Return the vectors of the parts of a text. Raise UnknownEmbedder and EmbedderFailed."""
    return find_embedder(embedder).embed(cut_parts(text), "query")


def vectors_of_thread(thread_id: int | None, embedder: str) -> QuerySet[Vector]:
    """Return the vectors of a thread by an embedder. Without a thread there are none."""
    return Vector.objects.filter(thread=thread_id, embedder=embedder)


def vectors_of_resource(resource_id: int | None, embedder: str) -> QuerySet[Vector]:
    """Return the vectors of all threads of a resource by an embedder. Without a resource there are none."""
    vectors = Vector.objects.filter(resource=resource_id, embedder=embedder)
    return vectors if resource_id is not None else vectors.none()


def rank_messages(vectors: QuerySet[Vector], queries: Rows) -> Iterator[FoundMessage]:
    """Yield each message once, the most similar first.

    Several queries are parts of one text: the most similar one counts. With pgvector all vectors are compared, and
    without it the newest RECALL_MOST.
    """
    if not len(queries):
        return
    seen: set[int] = set()
    for hit in (
        nearest_vectors_in_database(vectors, queries) if uses_pgvector() else nearest_of_newest(vectors, queries)
    ):
        if hit.message_id not in seen:
            seen.add(hit.message_id)
            yield hit


def nearest_of_newest(vectors: QuerySet[Vector], queries: Rows) -> Iterator[FoundMessage]:
    """Yield the newest vectors in the order of their similarity. numpy compares them."""
    import numpy as np

    # Not by "-message": that would be the order of messages, for which the database reads and sorts all of them.
    newest = vectors.order_by("-message_id").values_list("message_id", "part", "scale", "data")
    rows = fetch_raw_rows(newest[: settings.RECALL_MOST])
    # A provider may have changed the length of the vectors of a model.
    rows = [row for row in rows if len(row[3]) == queries.shape[1]]
    if rows:
        message_ids, parts, scales, data = zip(*rows, strict=True)
        best = similarity_scores(queries, scales, data)
        for index in np.argsort(-best, kind="stable"):
            yield FoundMessage(message_ids[index], parts[index], float(best[index]))


def nearest_vectors_in_database(vectors: QuerySet[Vector], queries: Rows) -> Iterator[FoundMessage]:
    """Yield the vectors in the order of their similarity. PostgreSQL compares them."""
    comparable = vectors.annotate(length=ByteLength("data")).filter(length=queries.shape[1])
    ordered = comparable.annotate(distance=CosineDistance(queries)).order_by("distance", "-message_id", "part")
    rows = ordered.values_list("message_id", "part", "distance")
    for start in count(0, ROWS_PER_RANKING):
        page = [*rows[start : start + ROWS_PER_RANKING]]
        yield from (
            FoundMessage(message_id, part, similarity_of_distance(distance)) for message_id, part, distance in page
        )
        if len(page) < ROWS_PER_RANKING:
            return


def recall_messages(
    vectors: QuerySet[Vector],
    queries: Rows,
    top_k: int,
    *,
    before: int = 0,
    after: int = 0,
    threshold: float | None = None,
    is_known: Callable[[Message], bool] = lambda message: False,
    distinct: bool = False,
) -> list[RecalledMessage]:
    """Return the most similar messages, each with those around it. Leave out those that are known already.

    With `distinct`, a message that somebody repeats takes one place: without it, a question that was asked often
    leaves no room for its answer.
    """
    hits = rank_messages(vectors, queries)
    similar = takewhile(lambda hit: threshold is None or hit.score >= threshold, hits)
    candidates = ((row, hit) for row, hit in with_messages(similar) if not is_known(row))
    chosen = [*islice(without_repeats(candidates) if distinct else candidates, top_k)]
    around = load_surroundings([row for row, _ in chosen], before, after)
    return [
        RecalledMessage(row, hit.part, hit.score, *(without_known(items, is_known) for items in around[row.pk]))
        for row, hit in chosen
    ]


def without_known(items: Sequence[Message], is_known: Callable[[Message], bool]) -> list[Message]:
    return [item for item in items if not is_known(item)]


def with_messages(hits: Iterable[FoundMessage]) -> Iterator[tuple[Message, FoundMessage]]:
    """Yield each hit with its message and thread. The first batches are small, because mostly few hits are needed."""
    remaining, size = iter(hits), ROWS_PER_LOOKUP
    while batch := [*islice(remaining, size)]:
        size = min(size * 2, MAX_ROWS_PER_LOOKUP)
        rows = Message.objects.select_related("thread").in_bulk([hit.message_id for hit in batch])
        yield from ((rows[hit.message_id], hit) for hit in batch if hit.message_id in rows)


def without_repeats(candidates: Iterable[tuple[Message, FoundMessage]]) -> Iterator[tuple[Message, FoundMessage]]:
    """Yield the first of the messages that have the same role and text. The words of a person may be a signal."""
    seen: set[tuple[str, str]] = set()
    for row, hit in islice(candidates, MAX_CANDIDATES):
        form = (Message.Role.USER if is_spoken(row) else row.role, row.text)
        if form not in seen:
            seen.add(form)
            yield row, hit
