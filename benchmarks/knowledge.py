"""The cost of knowledge bases: indexing of documents, and searches."""

from __future__ import annotations

import random
import time
from typing import Any

from benchmarks.timing import Figures, least_ms, milliseconds

CHUNK_SIZE = 1000  # characters
CHUNKS_PER_DOCUMENT = 500
DIMENSIONS = 384


def measure_indexing(chunks: int) -> Figures:
    """Return how long documents with so many chunks are indexed, with the default embedder."""
    from agentcms.vectors import find_embedder
    from jobs_app.models import Job
    from jobs_app.runner import run_claimed
    from knowledge_app.documents.adding import add_text
    from knowledge_app.indexing.rebuild import create_live_index
    from knowledge_app.models import Chunk, KnowledgeBase

    base = KnowledgeBase.objects.create(key="bench", name="Bench", owner_id="support", chunk_overlap=0)
    create_live_index(base)
    for number in range(max(1, chunks // CHUNKS_PER_DOCUMENT)):
        add_text(base, f"Document {number}", document_text(number))
    jobs = [str(job.pk) for job in Job.objects.filter(state=Job.State.QUEUED).order_by("created_at")]
    find_embedder(base.embedder).load()
    started, cpu = time.perf_counter(), time.process_time()
    for job in jobs:
        run_claimed(job)
    seconds, cpu = time.perf_counter() - started, time.process_time() - cpu
    count = Chunk.objects.count()
    title = f"indexing of {count:,} chunks of 1,000 characters with the default embedder, s"
    return {title: seconds, "CPU of indexing a chunk, ms": cpu / count * 1000}


def document_text(number: int) -> str:
    """Return a text with CHUNKS_PER_DOCUMENT paragraphs, each nearly as long as a chunk."""
    chance = random.Random(number)
    words = [f"{'aeiou'[n % 5]}{chance.choice('bdfgklmnprst')}{'aeiou'[n // 5 % 5]}{n}" for n in range(2000)]
    paragraphs = []
    for _ in range(CHUNKS_PER_DOCUMENT):
        text = " ".join(chance.choices(words, k=CHUNK_SIZE // 5))
        paragraphs.append(text[: CHUNK_SIZE - 20].rpartition(" ")[0] + ".")
    return "\n\n".join(paragraphs)


def measure_search(count: int) -> Figures:
    """Return the times of searches among so many chunks, on PostgreSQL with pgvector too."""
    from django.db import connection

    from agentcms.wire.metadata_filter import EVERYTHING, parse_filter
    from knowledge_app.search.vector_search import find_nearest

    base, query = filled_base(count), random_query()
    tenth = parse_filter({"year": 3}, ["year"])

    def search(condition: Any = EVERYTHING) -> None:
        base.index.refresh_from_db()
        assert len(find_nearest(base, base.index, query, condition, 5)) == 5

    def times(title: str) -> Figures:
        return {
            f"search in {count:,} chunks, {title}, ms": least_ms(search),
            f"search in a tenth of them by a filter, {title}, ms": least_ms(lambda: search(tenth)),
        }

    figures = times("all compared by numpy")
    if connection.vendor == "postgresql":
        figures |= {"adding pgvector to them, with HNSW, s": milliseconds(enable_pgvector) / 1000}
        figures |= times("pgvector with HNSW (goal 50)")
    return figures


def random_query() -> Any:
    """Return a vector of length 1."""
    import numpy as np

    query = np.random.default_rng(0).normal(size=DIMENSIONS).astype(np.float32)
    return query / np.linalg.norm(query)


def filled_base(count: int) -> Any:
    """Return a knowledge base with random vectors."""
    import numpy as np

    from agentcms.vectors.quantize import pack_vector
    from knowledge_app.indexing.rebuild import create_live_index
    from knowledge_app.models import Chunk, KnowledgeBase

    base = KnowledgeBase.objects.create(key="large", name="Large", owner_id="support", filterable=["year"])
    index = create_live_index(base)
    chance = np.random.default_rng(1)
    for start in range(0, count, 5000):
        vectors = chance.normal(size=(min(5000, count - start), DIMENSIONS)).astype(np.float32)
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        rows = []
        for number, (scale, data) in enumerate(map(pack_vector, vectors), start):
            values = {"key": f"k{number}", "text": f"Text {number}", "metadata": {"year": number % 10}}
            rows.append(Chunk(index=index, text_hash=f"h{number}", scale=scale, data=data, **values))
        Chunk.objects.bulk_create(rows, batch_size=1000)
    index.dimensions = DIMENSIONS
    index.save()
    return base


def enable_pgvector() -> None:
    """Add pgvector to the database, and create the approximate indexes."""
    from io import StringIO

    from django.core.management import call_command
    from django.db import connection

    call_command("use_pgvector", stdout=StringIO())
    run_due_jobs()
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")


def run_due_jobs() -> None:
    from jobs_app import runner
    from jobs_app.models import Job

    for job_id in Job.objects.due().values_list("pk", flat=True):
        runner.run_claimed(str(job_id))
