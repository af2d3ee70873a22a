"""Searches with pgvector find what searches without it find, in knowledge bases and in conversations."""

import numpy as np
import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.test.utils import CaptureQueriesContext

from agentcms.vectors.quantize import pack_vector
from agentcms.wire.metadata_filter import parse_filter
from jobs_app.models import Job
from knowledge_app.approximate import hnsw
from knowledge_app.indexing import limits
from knowledge_app.models import Chunk, KnowledgeIndex
from knowledge_app.search.retrieval import load_hits
from knowledge_app.search.vector_search import find_nearest
from knowledge_app.sent_vectors import delete_index
from memory_app.models import Message, Vector
from memory_app.recall.search import rank_messages, vectors_of_resource
from tests.factories import member
from tests.knowledge_app.conftest import make_base, run_jobs
from tests.memory_app.conftest import add_thread
from tests.pgvector import enabled_pgvector

pytestmark = [pytest.mark.django_db, pytest.mark.postgres_only]

COUNT, LENGTH = 300, 64


def unit_rows(count, seed=1):
    rows = np.random.default_rng(seed).normal(size=(count, LENGTH)).astype(np.float32)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


@pytest.fixture
def chunks(base):
    """Store chunks with random vectors, and those of another base. Return the base."""
    other = make_base("other", owner="sales")
    for owner_base, seed in ((base, 1), (other, 2)):
        rows = []
        for number, (scale, data) in enumerate(map(pack_vector, unit_rows(COUNT, seed))):
            values = {"key": f"k{number}", "text": f"Text {number}", "metadata": {"year": number % 10}}
            rows.append(Chunk(index=owner_base.index, text_hash=f"h{number}", scale=scale, data=data, **values))
        Chunk.objects.bulk_create(rows)
    return base


def nearest(base, query, condition=None, top_k=5):
    base.index.refresh_from_db()
    return find_nearest(base, base.index, query, parse_filter(condition or {}, ["year"]), top_k)


def test_a_knowledge_base_finds_the_same_chunks(chunks):
    queries = unit_rows(10)  # those of the first chunks
    conditions = [None, {"year": 3}]
    expected = [nearest(chunks, query, condition) for query in queries for condition in conditions]

    with enabled_pgvector():
        hits = [nearest(chunks, query, condition) for query in queries for condition in conditions]
        minimum = hits[0][1].score + 0.001
        above = load_hits(chunks, chunks.index, queries[0], parse_filter({}, []), 5, minimum)

    # Chunks that are nearly equally similar may change places, because pgvector compares other roundings.
    assert [matches[0].chunk_id for matches in hits[::2]] == [matches[0].chunk_id for matches in expected[::2]]
    assert [hit.chunk_id for hit in above] == [hits[0][0].chunk_id]
    scores = [[match.score for match in matches] for matches in hits]
    np.testing.assert_allclose(scores, [[match.score for match in matches] for matches in expected], atol=0.005)


def test_a_large_index_is_searched_by_hnsw(chunks, monkeypatch):
    monkeypatch.setattr(hnsw, "MIN_CHUNKS", COUNT)
    queries = unit_rows(10, seed=3)
    expected = [nearest(chunks, query) for query in queries]
    with enabled_pgvector() as is_enabled:
        run_jobs()
        with connection.cursor() as cursor:  # a planner sorts such small tables
            cursor.execute("SET LOCAL enable_sort = off")
            cursor.execute("SET LOCAL enable_seqscan = off")
        with CaptureQueriesContext(connection) as captured:
            hits = [nearest(chunks, query) for query in queries]
            rare = nearest(chunks, queries[0], {"year": 3}, top_k=40)
        if is_enabled:
            select = next(query["sql"] for query in captured if "<=>" in query["sql"])
            with connection.cursor() as cursor:
                cursor.execute(f"EXPLAIN {select}")
                plan = "\n".join(row[0] for row in cursor.fetchall())
            assert hnsw.index_name(chunks.index.pk) in plan
            assert KnowledgeIndex.objects.filter(has_ann_index=True).count() == 2

    pairs = zip(hits, expected, strict=True)
    common = sum(len({m.chunk_id for m in one} & {m.chunk_id for m in two}) for one, two in pairs)
    assert common >= 0.9 * 5 * len(queries)
    years = {*Chunk.objects.filter(pk__in=[match.chunk_id for match in rare]).values_list("metadata__year", flat=True)}
    assert (len(rare), years) == (COUNT // 10, {3})  # fewer than asked for, but all that there are


def test_a_graph_is_built_in_memory(base, monkeypatch):
    monkeypatch.setattr(hnsw, "MIN_CHUNKS", COUNT)
    vectors = enumerate(map(pack_vector, unit_rows(1500)))  # for which the least memory is not enough
    rows = [Chunk(index=base.index, key=f"k{number}", scale=scale, data=data) for number, (scale, data) in vectors]
    Chunk.objects.bulk_create(rows)
    messages = []
    with enabled_pgvector() as is_enabled:
        with connection.cursor() as cursor:
            cursor.execute("SET LOCAL maintenance_work_mem = '1MB'")
        connection.connection.add_notice_handler(lambda message: messages.append(message.message_primary))
        run_jobs()

        assert KnowledgeIndex.objects.filter(has_ann_index=True).exists() is is_enabled
    assert not any("no longer fits" in message for message in messages)


def test_the_hnsw_index_of_a_deleted_index_is_dropped(chunks, monkeypatch):
    monkeypatch.setattr(hnsw, "MIN_CHUNKS", COUNT)
    with enabled_pgvector() as is_enabled:
        run_jobs()
        beside = KnowledgeIndex.objects.create(base=chunks, name="beside", has_ann_index=is_enabled)
        names = hnsw_names()
        with connection.cursor() as cursor:
            cursor.execute(f"CREATE INDEX {hnsw.index_name(beside.pk)} ON knowledge_app_chunk (id)")
        delete_index(chunks, beside)
        run_jobs()

        assert hnsw_names() == names or not is_enabled


def test_an_index_that_becomes_large_while_others_are_refreshed_gets_its_own(chunks, monkeypatch):
    monkeypatch.setattr(hnsw, "MIN_CHUNKS", COUNT)
    late = Chunk.objects.exclude(index=chunks.index)
    late.update(is_pending=True)
    create = hnsw.create_hnsw_index

    def create_while_others_grow(index):
        late.update(is_pending=False)
        assert hnsw.enqueue_refresh() is None  # one is at work
        return create(index)

    monkeypatch.setattr(hnsw, "create_hnsw_index", create_while_others_grow)
    with enabled_pgvector() as is_enabled:
        run_jobs()

        assert KnowledgeIndex.objects.filter(has_ann_index=True).count() == 2 * is_enabled


def test_no_hnsw_index_remains_of_an_index_that_is_deleted_while_it_is_made(chunks, monkeypatch):
    count = hnsw.count_chunks
    with enabled_pgvector() as is_enabled:
        if not is_enabled:
            return
        beside = KnowledgeIndex.objects.create(base=chunks, name="beside")
        Chunk.objects.filter(index=chunks.index).update(index=beside)

        def count_and_delete(index):
            KnowledgeIndex.objects.filter(pk=index.pk).delete()
            return count(index)

        monkeypatch.setattr(hnsw, "count_chunks", count_and_delete)

        assert not hnsw.create_hnsw_index(beside)
        assert hnsw_names() == set()


def hnsw_names():
    with connection.cursor() as cursor:
        cursor.execute("SELECT indexname FROM pg_indexes WHERE starts_with(indexname, %s)", [hnsw.HNSW_INDEX_PREFIX])
        return {row[0] for row in cursor.fetchall()}


def test_with_pgvector_a_knowledge_base_has_no_limit_of_chunks(base, monkeypatch):
    monkeypatch.setattr(limits, "MAX_CHUNKS", 3)
    with pytest.raises(limits.DocumentError, match="pgvector"):
        limits.reject_many_chunks(base.index, None, 4)
    with enabled_pgvector() as is_enabled:
        if is_enabled:
            limits.reject_many_chunks(base.index, None, 4)
            assert hnsw.enqueue_if_large(base.index) is None  # it has none yet


def test_a_conversation_recalls_the_same_messages(settings):
    settings.RECALL_MOST = 100_000
    thread = add_thread(member("editor"), texts=[("user", f"Message {number}") for number in range(120)])
    rows = [*unit_rows(119), np.ones(8, np.float32)]  # the last is of another length
    for message, (scale, data) in zip(Message.objects.order_by("number"), map(pack_vector, rows), strict=True):
        values = {"embedder": "local/e", "resource": thread.resource, "scale": scale, "data": data}
        Vector.objects.create(message=message, part=0, thread=thread, **values)
    queries = unit_rows(2, seed=4)
    vectors = vectors_of_resource(thread.resource_id, "local/e")
    expected = [*rank_messages(vectors, queries)]

    with enabled_pgvector():
        hits = [*rank_messages(vectors, queries)]

    assert len(hits) == 119
    np.testing.assert_allclose([hit.score for hit in hits], [hit.score for hit in expected], atol=0.005)


def test_after_off_the_vectors_are_still_searched(chunks):
    query = unit_rows(1, seed=3)[0]
    expected = nearest(chunks, query)
    with enabled_pgvector():
        call_command("use_pgvector", "--off")

        assert nearest(chunks, query) == expected


@pytest.mark.django_db
def test_the_server_of_the_database_needs_the_extension(monkeypatch):
    from agentcms.vectors import pgvector

    monkeypatch.setattr(pgvector, "MIN_VERSION", (99, 0))

    with pytest.raises(CommandError, match=r"Nothing was changed.*no pgvector"):
        call_command("use_pgvector")
    assert not Job.objects.filter(kind=hnsw.REFRESH).exists()
