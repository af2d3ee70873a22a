"""Indexing beside other documents and other knowledge bases, which stay as they are."""

import pytest

from agentcms.vectors import EmbedderFailed, embedders
from jobs_app.models import Job
from jobs_app.runner import run_claimed
from knowledge_app.documents.adding import add_text, delete_document
from knowledge_app.indexing import embedding
from knowledge_app.indexing.handlers import fail_documents_of_job
from knowledge_app.indexing.jobs import enqueue_reindexing
from knowledge_app.indexing.rebuild import begin_rebuild
from knowledge_app.models import Chunk, Document, IndexedDocument, KnowledgeBase, KnowledgeIndex
from knowledge_app.sent_vectors import upsert_vectors
from tests.knowledge_app.conftest import WordEmbedder, make_base, run_jobs

pytestmark = pytest.mark.django_db

TEXT = "# One\n\n" + "Press the button. " * 40 + "\n\n# Two\n\n" + "Wait for the light. " * 40


def rows_of(documents):
    """Return all that is stored of documents."""
    chunks = Chunk.objects.filter(document__in=documents).order_by("pk")
    indexed = IndexedDocument.objects.filter(document__in=documents).order_by("pk")
    return [[*rows.values()] for rows in (documents.order_by("pk"), chunks, indexed)]


def rows_of_base(base):
    indexes = KnowledgeIndex.objects.filter(base=base).order_by("pk")
    sent = Chunk.objects.filter(index__in=indexes, document=None)
    return [*rows_of(Document.objects.filter(base=base)), [*indexes.values()], [*sent.values()]]


@pytest.fixture
def others(base):
    """Three documents of two bases with equal names and texts: one that fails, two with chunks that are searched."""
    other = make_base("manual", "sales")
    for one, name in ((base, "Neighbour"), (other, "Install"), (other, "Neighbour")):
        add_text(one, name, TEXT)
    run_jobs()
    Document.objects.filter(base=other, name="Neighbour").update(status="failed", error="No text was found.")
    return Document.objects.exclude(base=base, name="Install")


def test_a_document_is_indexed_beside_others(base, others, embedder):
    before = rows_of(others)

    document = add_text(base, "Install", TEXT)
    waiting = add_text(base, "Later", TEXT)
    run_claimed(str(document.job_id))

    document.refresh_from_db()
    assert (document.status, document.chunk_count) == ("ready", document.chunks.count())
    assert document.chunk_count == len(before[1]) / 3 > 1
    waiting.refresh_from_db()
    assert (waiting.status, waiting.chunk_count, waiting.chunks.count()) == ("queued", 0, 0)
    assert rows_of(others.exclude(pk=waiting.pk)) == before


def test_a_changed_document_has_its_new_chunks_beside_others(base, others, embedder):
    add_text(base, "Install", TEXT)
    run_jobs()
    before = rows_of(others)

    document = add_text(base, "Install", "Short.")
    run_jobs()

    assert [*document.chunks.values_list("text", "is_pending")] == [("Short.", False)]
    assert rows_of(others) == before


def test_a_document_fails_beside_others(base, others, embedder, monkeypatch):
    monkeypatch.setattr(embedding, "wait", lambda seconds: None)
    before = rows_of(others)
    document = add_text(base, "Install", "Something new.")
    embedder.failures = [EmbedderFailed("The provider has no key.")] * 4

    run_jobs()

    document.refresh_from_db()
    assert (document.status, document.error) == ("failed", "The provider has no key.")
    assert rows_of(others) == before


def test_a_job_that_is_given_up_fails_its_own_document(base, others):
    document, waiting = add_text(base, "Install", TEXT), add_text(base, "Later", TEXT)

    fail_documents_of_job(Job.objects.get(pk=document.job_id))

    assert Document.objects.get(pk=document.pk).status == "failed"
    assert Document.objects.get(pk=waiting.pk).status == "queued"


def test_a_document_is_deleted_beside_others(base, others):
    document = add_text(base, "Install", TEXT)
    run_jobs()
    before = rows_of(others)

    delete_document(document)
    run_jobs()

    assert rows_of(others) == before


def test_each_base_has_its_texts_embedded(base, others, embedder):
    """Another team's vector of the same text would tell that the team has this text."""
    assert len(embedder.texts) == 2 * len({*embedder.texts})


@pytest.mark.parametrize("change", [{"chunk_size": 300}, {"embedder": "local/others"}])
def test_a_base_is_rebuilt_beside_others(base, others, monkeypatch, change):
    monkeypatch.setitem(embedders._local, "local/others", ("Others", WordEmbedder("local/others", 32)))
    document = add_text(base, "Install", TEXT)
    run_jobs()
    other = Document.objects.exclude(base=base)[0].base
    for owner in (base, other):
        upsert_vectors(owner, owner.live_index, [[1] * 64], [{"text": f"Sent to {owner.key}."}], ["sent"])
    begin_rebuild(other)
    before = rows_of_base(other)
    old = {*Chunk.objects.filter(index__base=base).values_list("pk", flat=True)}
    KnowledgeBase.objects.filter(pk=base.pk).update(**change)

    enqueue_reindexing(base)
    run_jobs()

    base.refresh_from_db()
    document.refresh_from_db()
    new = Chunk.objects.filter(index__base=base)
    assert not old & {*new.values_list("pk", flat=True)}
    assert {row.index_id for row in new} == {base.index_id}
    assert [*new.filter(document=None).values_list("text", flat=True)] == ["Sent to handbook."]
    assert document.chunk_count == document.chunks.count() == (new.count() - 1) / 2
    assert rows_of_base(other) == before
