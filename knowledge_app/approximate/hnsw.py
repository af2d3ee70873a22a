"""The HNSW index that PostgreSQL has for each large knowledge index. A job creates and deletes them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from uuid import UUID

from django.db import connection
from django.db.models import Count, Q

from agentcms.vectors.pgvector import uses_pgvector
from agentcms.wire.json_types import JSONObject
from jobs_app.models import Job
from jobs_app.runner import enqueue, job_handler, offer_to_superusers
from knowledge_app.models import Chunk, KnowledgeIndex

REFRESH = "refresh_hnsw"
MIN_CHUNKS = 50_000  # from here on, comparing all vectors takes longer than a person waits
MAX_HNSW_DIMENSIONS = 4000  # of an HNSW index over halfvec
HNSW_INDEX_PREFIX = "knowledge_hnsw_"
# What pgvector takes to build a graph in memory: the numbers of a vector as halfvec, and its links to others.
BYTES_PER_NUMBER, BYTES_PER_VECTOR = 2, 1000
MAX_BUILD_MB = 1024

offer_to_superusers("refresh-hnsw", "Create missing HNSW indexes", REFRESH)


def index_name(index_id: UUID) -> str:
    return f"{HNSW_INDEX_PREFIX}{index_id.hex}"


def enqueue_if_large(index: KnowledgeIndex) -> Job | None:
    """Let a worker create the HNSW index of a knowledge index that has become large."""
    if index.has_ann_index or not uses_pgvector() or count_chunks(index) < MIN_CHUNKS:
        return None
    return enqueue_refresh()


def enqueue_refresh() -> Job | None:
    """Let a worker create and drop HNSW indexes, unless one is about to do it."""
    return None if Job.objects.unfinished().filter(kind=REFRESH).exists() else enqueue(REFRESH)


def count_chunks(index: KnowledgeIndex) -> int:
    return Chunk.objects.filter(index=index, is_pending=False).count()


@job_handler(REFRESH, "HNSW indexes of knowledge bases")
def refresh_hnsw_indexes(job: Job) -> JSONObject:
    """Create the HNSW indexes that are missing, and drop those of knowledge indexes that were deleted."""
    if not uses_pgvector():
        return {"created": 0, "dropped": 0}
    dropped, created = drop_orphans(), 0
    chunks = Count("chunks", filter=Q(chunks__is_pending=False))
    missing = KnowledgeIndex.objects.filter(has_ann_index=False).annotate(count=chunks).filter(count__gte=MIN_CHUNKS)
    # An index that cannot have one would be found again and again.
    tried: list[UUID] = []
    # One after the other: for an index that becomes large meanwhile, no other job is made.
    while (index := missing.exclude(pk__in=tried).order_by("pk").first()) is not None:
        tried.append(index.pk)
        created += create_hnsw_index(index)
        job.report_progress(done=created)
    return {"created": created, "dropped": dropped}


def create_hnsw_index(index: KnowledgeIndex) -> bool:
    """Create the HNSW index of a knowledge index, while others read and write.

    Return False if it cannot have one, or was deleted meanwhile.
    """
    data = Chunk.objects.filter(index=index, is_pending=False).values_list("data", flat=True).first()
    dimensions = len(bytes(data)) if data is not None else 0
    if not 0 < dimensions <= MAX_HNSW_DIMENSIONS:
        return False
    drop_index_named(index_name(index.pk))  # that of a killed job is not valid
    name, table = index_name(index.pk), Chunk._meta.db_table
    with memory_for(count_chunks(index), dimensions), connection.cursor() as cursor:
        cursor.execute(
            f"CREATE INDEX {concurrently()}{name} ON {table} "
            f"USING hnsw ((halves::halfvec({dimensions})) halfvec_cosine_ops) "
            # The conditions of each search: otherwise PostgreSQL could not use the index for it.
            f"WHERE index_id = '{index.pk}'::uuid AND NOT is_pending"
        )
    is_used = KnowledgeIndex.objects.filter(pk=index.pk).update(has_ann_index=True, dimensions=dimensions) > 0
    if not is_used:  # the knowledge index was deleted meanwhile
        drop_index_named(name)
    return is_used


@contextmanager
def memory_for(count: int, dimensions: int) -> Iterator[None]:
    """Give PostgreSQL the memory to build a graph of this many vectors, unless its own setting is enough.

    What does not fit into the memory takes twice as long and more. The memory is that of one process: the shared
    memory, by which several build a graph, is often limited to 64 MB in a container.
    """
    needed = min(count * (dimensions * BYTES_PER_NUMBER + BYTES_PER_VECTOR) // 2**20 + 1, MAX_BUILD_MB)
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_size_bytes(current_setting('maintenance_work_mem')) < %s", [needed * 2**20])
        if not cursor.fetchone()[0]:
            yield
            return
        cursor.execute("SELECT set_config('maintenance_work_mem', %s, false)", [f"{needed}MB"])
        cursor.execute("SET max_parallel_maintenance_workers = 0")
    try:
        yield
    finally:
        with connection.cursor() as cursor:
            cursor.execute("RESET maintenance_work_mem")
            cursor.execute("RESET max_parallel_maintenance_workers")


def drop_orphans() -> int:
    """Drop the HNSW indexes of deleted knowledge indexes, and return their number."""
    with connection.cursor() as cursor:
        # Not LIKE, for which an underscore is any character.
        cursor.execute("SELECT indexname FROM pg_indexes WHERE starts_with(indexname, %s)", [HNSW_INDEX_PREFIX])
        names = {row[0] for row in cursor.fetchall()}
    orphans = names - {index_name(index_id) for index_id in KnowledgeIndex.objects.values_list("pk", flat=True)}
    for name in orphans:
        drop_index_named(name)
    return len(orphans)


def drop_index_named(name: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(f"DROP INDEX {concurrently()}IF EXISTS {name}")


def concurrently() -> str:
    """Return the keyword by which writers need not wait. It is impossible in a transaction."""
    return "" if connection.in_atomic_block else "CONCURRENTLY "
