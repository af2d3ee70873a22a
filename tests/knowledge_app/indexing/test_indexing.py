"""The indexing of documents: what is embedded, what is replaced, and what a killed job leaves."""

import contextlib
import errno
from datetime import timedelta
from types import SimpleNamespace

import pytest
from django.utils import timezone

from agentcms.vectors import EmbedderFailed, embedders
from jobs_app.models import MAX_ATTEMPTS, Job, LeaseLost
from jobs_app.runner import run_claimed, send_due
from knowledge_app.documents.adding import add_content, add_text, delete_document
from knowledge_app.documents.media_types import HTML, MARKDOWN
from knowledge_app.indexing import embedding, limits
from knowledge_app.indexing.embedding import BATCH_SIZE
from knowledge_app.indexing.handlers import (
    GIVEN_UP_MESSAGE,
    UNEXPECTED_MESSAGE,
    index_document,
    indexing_slots,
    rebuild,
)
from knowledge_app.indexing.jobs import (
    INDEX_DOCUMENT,
    REINDEX_BASE,
    enqueue_document_indexing,
    enqueue_reindexing,
)
from knowledge_app.models import Chunk, Document, IndexedDocument, KnowledgeBase, KnowledgeIndex
from knowledge_app.models.document import DocumentQuerySet
from knowledge_app.search.retrieval import search_base
from knowledge_app.sent_vectors import create_index, upsert_vectors
from tests.knowledge_app.conftest import WordEmbedder, make_base, run_jobs

pytestmark = pytest.mark.django_db


def long_text(count=60, word="Router"):
    return "\n\n".join(
        f"# Chapter {number}\n\n{word} number {number} has port {number}. " * 3 for number in range(count)
    )


def chunk_rows():
    return [*Chunk.objects.order_by("number").values_list("number", "text", "start", "end", "place", "is_pending")]


def test_a_document_becomes_chunks_with_their_places(base, embedder):
    document = add_text(base, "Install", long_text(5))
    run_jobs()

    document.refresh_from_db()
    chunks = [*document.chunks.order_by("number")]
    assert (document.status, document.error, document.content) == ("ready", "", b"")
    assert document.chunk_count == len(chunks) > 0
    assert all(chunk.text == document.text[chunk.start : chunk.end] for chunk in chunks)
    assert all(len(chunk.text) <= 1000 for chunk in chunks)
    assert chunks[0].place == "Chapter 0"
    assert embedder.texts == [chunk.text for chunk in chunks]


def test_the_same_document_is_not_indexed_again(base, embedder):
    document = add_text(base, "Install", long_text(5))
    run_jobs()
    before = [*Chunk.objects.values_list("pk", flat=True)]
    embedder.texts.clear()

    add_text(base, "Install", long_text(5))
    assert not Job.objects.filter(state="queued").exists()
    enqueue_document_indexing(document)
    run_jobs()

    assert embedder.texts == []
    assert [*Chunk.objects.values_list("pk", flat=True)] == before


def test_only_new_texts_of_a_changed_document_are_embedded(base, embedder):
    add_text(base, "Install", "# One\n\n" + "a b c. " * 120 + "\n\n# Two\n\n" + "d e f. " * 120)
    run_jobs()
    embedder.texts.clear()

    add_text(base, "Install", "# One\n\n" + "a b c. " * 120 + "\n\n# Two\n\n" + "x y z. " * 120)
    run_jobs()

    assert embedder.texts
    assert all("x y z" in text and "a b c" not in text for text in embedder.texts)
    assert not Chunk.objects.filter(text__contains="d e f").exists()
    assert not Chunk.objects.filter(is_pending=True).exists()


def test_the_same_content_of_another_format_has_another_text(base):
    content = b"<html><body><p>The port is eighty.</p></body></html>"
    document = add_content(base, "notes", content, media_type=MARKDOWN, source="text")
    run_jobs()
    assert Chunk.objects.get().text.startswith("<html>")

    add_content(base, "notes", content)
    run_jobs()

    document.refresh_from_db()
    assert (document.media_type, document.text, document.status) == (HTML, "The port is eighty.", "ready")
    assert Chunk.objects.get().text == "The port is eighty."


def test_metadata_changes_without_embedding(base, embedder):
    document = add_text(base, "Install", long_text(3), metadata={"product": "router"})
    run_jobs()
    embedder.texts.clear()

    add_text(base, "Install", long_text(3), metadata={"product": "switch"})
    run_jobs()

    assert embedder.texts == []
    assert {*document.chunks.values_list("metadata__product", flat=True)} == {"switch"}
    assert bytes(Document.objects.get().content) == b""  # its text is stored already


class Killed(BaseException):
    """The end of a process: nothing handles it."""


def test_a_killed_job_continues_without_embedding_a_text_twice(db, embedder):
    sizes = {"chunk_size": 200, "chunk_overlap": 0}
    base = make_base(**sizes)
    document = add_text(base, "Install", long_text(200))
    embed, calls = embedder.embed, []

    def embed_twice_then_die(texts, kind):
        calls.append(len(texts))
        if len(calls) == 3:
            raise Killed
        return embed(texts, kind)

    embedder.embed = embed_twice_then_die
    with pytest.raises(Killed):
        run_claimed(str(document.job_id))
    assert Chunk.objects.filter(is_pending=True).count() == 2 * embedding.BATCH_SIZE
    assert not Chunk.objects.filter(is_pending=False).exists()
    Job.objects.update(state="queued")
    run_jobs()

    assert Document.objects.get().status == "ready"
    assert len(embedder.texts) == len({*embedder.texts}) == Chunk.objects.count()
    assert not Chunk.objects.filter(is_pending=True).exists()
    rows = chunk_rows()
    base.delete()
    add_text(make_base("other", **sizes), "Install", long_text(200))
    run_jobs()
    assert chunk_rows() == rows


def test_the_progress_after_a_change_counts_each_chunk_once(db, embedder, monkeypatch):
    base, text = make_base(chunk_size=200, chunk_overlap=0), long_text(40)
    document, embed = add_text(base, "Install", text), embedder.embed

    def embed_and_die(texts, kind):
        embedder.embed = die
        return embed(texts, kind)

    def die(texts, kind):
        raise Killed

    embedder.embed = embed_and_die
    with pytest.raises(Killed):
        run_claimed(str(document.job_id))
    embedder.embed, reports = embed, []
    monkeypatch.setattr(Job, "report_progress", lambda job, **values: reports.append(values))
    # The first chunk changes. Those after it in the batch that was embedded are used again.
    add_text(base, "Install", text.replace("number 0 has", "number 9 has", 1))
    run_jobs()

    count = Chunk.objects.count()
    assert max(values["done"] for values in reports) == count > embedding.BATCH_SIZE


def test_a_newer_job_replaces_the_work_of_an_older_one(base, embedder):
    document = add_text(base, "Install", long_text(60))
    old_job = document.job_id
    Job.objects.filter(pk=old_job).update(state="running", lease_until="2020-01-01T00:00Z")  # its worker died
    add_text(base, "Install", "Short.")

    assert run_claimed(str(old_job)).result == {"skipped": True}
    run_jobs()

    assert [*Chunk.objects.values_list("text", flat=True)] == ["Short."]


def test_a_worker_that_lost_its_job_changes_nothing_of_what_the_next_one_made(base, embedder, settings):
    settings.KNOWLEDGE_JOBS_PER_WORKER = 2
    document = add_text(base, "Install", long_text(200))
    embed, job_id = embedder.embed, str(document.job_id)

    def stall(texts, kind):
        embedder.embed = embed
        Job.objects.filter(pk=job_id).update(lease_until=timezone.now() - timedelta(seconds=1))
        assert run_claimed(job_id).state == "done"
        return embed(texts, kind)

    embedder.embed = stall
    run_claimed(job_id)

    document.refresh_from_db()
    assert (document.status, document.error, Job.objects.get().state) == ("ready", "", "done")
    assert document.chunk_count == Chunk.objects.filter(is_pending=False).count() == Chunk.objects.count()


@pytest.mark.parametrize("kind", [INDEX_DOCUMENT, REINDEX_BASE])
def test_a_document_whose_workers_all_died_has_failed_and_can_be_indexed_again(base, embedder, kind):
    document = add_text(base, "Install", "Short.")
    expired = timezone.now() - timedelta(seconds=1)
    Job.objects.update(kind=kind, state="running", attempts=MAX_ATTEMPTS, lease_until=expired)
    Document.objects.update(status="indexing")

    send_due()

    document.refresh_from_db()
    assert (document.status, document.error) == ("failed", GIVEN_UP_MESSAGE)
    assert Job.objects.get().state == "failed"
    enqueue_reindexing(base)
    run_jobs()
    document.refresh_from_db()
    assert (document.status, document.error) == ("ready", "")


def test_a_document_that_is_replaced_before_it_is_indexed_waits_in_one_job(base, embedder):
    document = add_text(base, "Install", long_text(60))
    job_id = document.job_id
    for number in range(3):
        document = add_text(base, "Install", f"Version {number}.")

    assert [*Job.objects.values_list("pk", flat=True)] == [job_id] == [document.job_id]
    run_jobs()

    assert [*Chunk.objects.values_list("text", flat=True)] == ["Version 2."] == embedder.texts
    assert Document.objects.get().status == "ready"


def test_a_document_that_is_replaced_while_it_is_indexed_is_given_up(base, embedder):
    add_text(base, "Install", long_text(200))
    embed = embedder.embed

    def replace_it(texts, kind):
        embedder.embed = embed
        add_text(base, "Install", "Short.")
        return embed(texts, kind)

    embedder.embed = replace_it
    run_jobs()

    assert [*Chunk.objects.values_list("text", "is_pending")] == [("Short.", False)]


def test_a_deleted_document_has_no_vectors_and_its_job_ends(base, embedder):
    document = add_text(base, "Install", long_text(200))
    embed = embedder.embed

    def delete_it(texts, kind):
        delete_document(document)
        return embed(texts, kind)

    embedder.embed = delete_it
    run_jobs()

    assert not Chunk.objects.exists()
    assert Job.objects.get().state == "done"


def test_a_base_that_is_deleted_while_it_is_indexed_ends_its_job_with_the_reason(base, embedder, monkeypatch):
    from knowledge_app.indexing import handlers

    update = handlers.update_documents

    def update_and_delete(base, job):
        report = update(base, job)
        base.delete()
        return report

    monkeypatch.setattr(handlers, "update_documents", update_and_delete)
    enqueue_reindexing(base)
    run_jobs()

    job = Job.objects.get()
    assert (job.state, job.error) == ("failed", "The knowledge base was deleted.")


def test_an_embedder_that_fails_is_asked_again(base, embedder, monkeypatch, caplog):
    waits = []
    monkeypatch.setattr(embedding, "wait", waits.append)
    limited = EmbedderFailed("Too many requests.", is_rate_limited=True)
    embedder.failures = [EmbedderFailed("Busy."), EmbedderFailed("Busy."), limited]
    add_text(base, "Install", "Short.")
    run_jobs()
    assert (Document.objects.get().status, waits) == ("ready", [1.0, 2.0, 40.0])

    embedder.failures = [EmbedderFailed("The provider has no key.")] * 4
    document = add_text(base, "Other", "Short indeed.")
    run_jobs()
    document.refresh_from_db()
    assert (document.status, document.error) == ("failed", "The provider has no key.")
    assert Job.objects.get(pk=document.job_id).error == "The provider has no key."
    assert {(record.levelname, record.exc_info) for record in caplog.records} == {("WARNING", None)}


def test_a_fault_of_ours_is_an_error_in_the_log_and_no_text_for_the_user(base, embedder, caplog):
    embedder.failures = [RuntimeError("Secret.")]
    document = add_text(base, "Install", "Short.")
    run_jobs()

    document.refresh_from_db()
    assert (document.status, document.error) == ("failed", UNEXPECTED_MESSAGE)
    assert [record.exc_info[0] for record in caplog.records if record.levelname == "ERROR"] == [RuntimeError]


def test_another_embedder_builds_another_index_and_swaps_it(base, embedder, monkeypatch):
    add_text(base, "Install", long_text(5))
    run_jobs()
    old = base.index
    other = WordEmbedder("local/others", 32)
    monkeypatch.setitem(embedders._local, other.name, ("Others", other))
    embed, live = other.embed, []

    def look_at_the_live_index(texts, kind):
        base.refresh_from_db()
        live.append(base.index_id)
        return embed(texts, kind)

    other.embed = look_at_the_live_index
    base.embedder = other.name
    base.save()
    enqueue_reindexing(base)
    run_jobs()

    base.refresh_from_db()
    assert {*live} == {old.pk}  # searches read the old one until the new one is complete
    assert [row.pk for row in KnowledgeIndex.objects.all()] == [base.index_id] != [old.pk]
    assert (base.index.name, base.index.embedder, base.index.is_building) == ("handbook", "local/others", False)
    assert {*Chunk.objects.values_list("embedder", flat=True)} == {"local/others"}
    assert {len(bytes(data)) for data in Chunk.objects.values_list("data", flat=True)} == {32}


def test_vectors_that_are_sent_during_a_rebuild_are_kept(base, embedder, monkeypatch):
    """A vector is new, another one is replaced, while the other index is built."""
    monkeypatch.setitem(embedders._local, "local/other", ("Other", other := WordEmbedder("local/other", 32)))
    add_text(base, "Install", long_text(60))
    run_jobs()

    def send(key, text):
        upsert_vectors(base, base.live_index, [[1] * 64], [{"text": text}], [key])

    send("a", "First.")
    send("b", "Second.")
    embed = other.embed

    def send_meanwhile(texts, kind):
        if any("Chapter" in text for text in texts):
            other.embed = embed
            send("a", "Replaced.")
            send("c", "New.")
        return embed(texts, kind)

    other.embed = send_meanwhile
    base.embedder = "local/other"
    base.save()
    enqueue_reindexing(base)
    run_jobs()

    base.refresh_from_db()
    sent = base.live_index.chunks.filter(document=None)
    assert base.live_index.embedder == "local/other"
    assert dict(sent.values_list("key", "text")) == {"a": "Replaced.", "b": "Second.", "c": "New."}
    assert {len(bytes(data)) for data in sent.values_list("data", flat=True)} == {32}
    assert other.texts.count("Second.") == 1


def test_a_document_that_is_deleted_during_a_rebuild_does_not_stop_it(base, embedder, monkeypatch):
    monkeypatch.setitem(embedders._local, "local/other", ("Other", other := WordEmbedder("local/other", 32)))
    documents = [add_text(base, name, long_text(3, name)) for name in ("First", "Second")]
    run_jobs()
    embed = other.embed

    def delete_it(texts, kind):
        other.embed = embed
        delete_document(documents[0])
        return embed(texts, kind)

    other.embed = delete_it
    base.embedder = other.name
    base.save()
    job = enqueue_reindexing(base)
    run_jobs()

    job.refresh_from_db()
    base.refresh_from_db()
    assert (job.state, job.error, base.live_index.embedder) == ("done", "", "local/other")
    assert {*Chunk.objects.values_list("document__name", flat=True)} == {"Second"}


def test_a_search_finds_what_a_rebuild_moves_meanwhile(base, embedder, monkeypatch):
    """The rebuild deletes the index that the search began with, while the embedder answers the question."""
    monkeypatch.setitem(embedders._local, "local/other", ("Other", other := WordEmbedder("local/other", 32)))
    add_text(base, "Install", "The port is eighty.")
    run_jobs()
    searched = KnowledgeBase.objects.select_related("index").get()
    base.embedder = other.name
    base.save()
    enqueue_reindexing(base)
    embed = embedder.embed

    def rebuild_it(texts, kind):
        run_jobs()
        return embed(texts, kind)

    embedder.embed = rebuild_it

    assert [hit.text for hit in search_base(searched, "Which port?")] == ["The port is eighty."]
    base.delete()
    assert search_base(searched, "Which port?") == []


def test_newer_settings_end_the_job_that_copies_sent_vectors_for_older_ones(base, embedder, monkeypatch, settings):
    settings.KNOWLEDGE_JOBS_PER_WORKER = 2
    monkeypatch.setitem(embedders._local, "local/other", ("Other", other := WordEmbedder("local/other", 32)))
    upsert_vectors(base, base.live_index, [[1] * 64], [{"text": "First."}], ["a"])
    base.embedder = other.name
    base.save()
    first, embed = enqueue_reindexing(base), other.embed

    def change_the_settings(texts, kind):
        other.embed = embed
        base.chunk_size = 500
        base.save()
        assert run_claimed(str(enqueue_reindexing(base).pk)).state == "done"
        return embed(texts, kind)

    other.embed = change_the_settings

    assert run_claimed(str(first.pk)).result["skipped"] is True
    index = KnowledgeIndex.objects.get()
    assert (index.chunk_size, [*index.chunks.values_list("key", flat=True)]) == (500, ["a"])


def test_of_two_jobs_that_build_the_same_index_one_goes_on(base, embedder, monkeypatch, settings):
    settings.KNOWLEDGE_JOBS_PER_WORKER = 2
    monkeypatch.setitem(embedders._local, "local/other", ("Other", other := WordEmbedder("local/other", 32)))
    add_text(base, "Install", long_text(600))
    run_jobs()
    base.embedder = other.name
    base.save()
    first, embed, second = enqueue_reindexing(base), other.embed, []

    def start_the_other(texts, kind):
        other.embed = fail_after_one_batch
        second.append(enqueue_reindexing(base))
        run_claimed(str(second[0].pk))
        other.embed = embed
        return embed(texts, kind)

    def fail_after_one_batch(texts, kind):
        other.embed = fill_the_disk
        return embed(texts, kind)

    def fill_the_disk(texts, kind):
        raise OSError(errno.ENOSPC, "No space left")

    other.embed = start_the_other
    run_claimed(str(first.pk))
    Job.objects.filter(pk=second[0].pk).update(lease_until="2020-01-01T00:00Z")
    run_claimed(str(second[0].pk))

    jobs = {job.pk: (job.state, job.error) for job in Job.objects.filter(kind=REINDEX_BASE)}
    base.refresh_from_db()
    assert jobs == {first.pk: ("done", ""), second[0].pk: ("done", "")}
    assert (base.live_index.embedder, KnowledgeIndex.objects.count()) == ("local/other", 1)


def test_a_document_is_ready_after_a_rebuild_that_ends_while_it_is_indexed(base, embedder, monkeypatch):
    monkeypatch.setitem(embedders._local, "local/other", ("Other", WordEmbedder("local/other", 32)))
    document = add_text(base, "Install", long_text(5))
    embed = embedder.embed

    def rebuild_meanwhile(texts, kind):
        embedder.embed = embed
        base.embedder = "local/other"
        base.save()
        rebuild(base, SimpleNamespace(done=0, report_progress=lambda **values: None))
        return embed(texts, kind)

    embedder.embed = rebuild_meanwhile
    run_jobs()

    base.refresh_from_db()
    document.refresh_from_db()
    assert base.live_index.embedder == "local/other"
    assert (document.status, document.chunk_count) == ("ready", base.live_index.chunks.count())


def test_an_index_that_a_caller_names_does_not_prevent_a_rebuild(base, embedder):
    create_index(base, "handbook-building", 64)
    add_text(base, "Install", long_text(5))
    base.chunk_size = 300
    base.save()

    enqueue_reindexing(base)
    run_jobs()

    base.refresh_from_db()
    assert base.live_index.chunk_size == 300
    assert Document.objects.get().chunk_count == base.live_index.chunks.count()
    assert {*base.indexes.values_list("name", flat=True)} == {"handbook", "handbook-building"}


def test_a_killed_rebuild_continues_where_it_stopped(base, embedder):
    for number in range(4):
        add_text(base, f"Document {number}", long_text(5, f"Word{number}"))
    run_jobs()
    base.chunk_size, base.chunk_overlap = 200, 0
    base.save()
    embedder.texts.clear()
    embed, calls = embedder.embed, []

    def die_at_the_third(texts, kind):
        calls.append(texts)
        if len(calls) == 3:
            raise Killed
        return embed(texts, kind)

    embedder.embed = die_at_the_third
    job = enqueue_reindexing(base)
    with pytest.raises(Killed):
        run_claimed(str(job.pk))
    Job.objects.filter(pk=job.pk).update(state="queued")
    run_jobs()

    base.refresh_from_db()
    assert base.index.chunk_size == 200
    assert len(embedder.texts) == len({*embedder.texts})
    assert base.index.indexed_documents.count() == 4
    assert KnowledgeIndex.objects.count() == 1


def test_the_progress_of_all_documents_counts_documents(base, embedder, monkeypatch):
    """First those that are looked through, then those of the other index."""
    for number in range(3):
        add_text(base, f"Document {number}", long_text(60, f"Word{number}"))
    run_jobs()
    IndexedDocument.objects.all().delete()
    base.chunk_size = 300
    base.save()
    reports, report_progress = [], Job.report_progress

    def report_and_note(job, **values):
        report_progress(job, **values)
        reports.append((job.done, job.total))

    monkeypatch.setattr(Job, "report_progress", report_and_note)

    enqueue_reindexing(base)
    run_jobs()

    first_pass, second_pass = reports[: reports.index((3, 3)) + 1], reports[reports.index((3, 3)) + 1 :]
    assert [*dict.fromkeys(first_pass)] == [(0, 3), (1, 3), (2, 3), (3, 3)]
    assert [*dict.fromkeys(second_pass)] == [(0, 3), (1, 3), (2, 3), (3, 3)]


def test_more_chunks_than_can_be_searched_are_refused(base, monkeypatch):
    monkeypatch.setattr(limits, "MAX_CHUNKS", 3)
    document = add_text(base, "Install", long_text(30))
    run_jobs()

    document.refresh_from_db()
    assert document.status == "failed"
    assert "Divide it" in document.error
    assert not Chunk.objects.exists()


def test_a_damaged_document_fails_with_a_reason(base):
    document = add_content(base, "broken.pdf", b"%PDF-1.7 nothing")
    run_jobs()

    document.refresh_from_db()
    assert document.status == "failed"
    assert document.error.endswith(".")


def test_documents_wait_for_a_place_in_the_worker(base):
    first, second = (add_text(base, name, "The port is eighty.") for name in ("One", "Two"))
    assert indexing_slots.take(Job.objects.create_claimed(INDEX_DOCUMENT, {}))

    waiting = [run_claimed(str(document.job_id)).state for document in (first, second)]
    indexing_slots.free()
    run_jobs()

    assert waiting == ["queued"] * 2
    assert [*base.documents.values_list("status", flat=True)] == ["ready"] * 2
    assert (indexing_slots.taken, indexing_slots.waiting) == (0, {})


def test_documents_of_another_team_do_not_wait_for_all_of_one(base):
    own = [add_text(base, name, "The port is eighty.") for name in ("One", "Two", "Three")]
    other = add_text(make_base("other", owner="sales"), "Four", "The port is ninety.")
    assert indexing_slots.take(Job.objects.create_claimed(INDEX_DOCUMENT, {}), "support")
    for document in (*own, other):
        run_claimed(str(document.job_id))
    indexing_slots.free("support")

    out_of_turn = run_claimed(str(own[0].job_id)).state
    in_turn = run_claimed(str(other.job_id)).state
    run_jobs()

    assert (out_of_turn, in_turn) == ("queued", "done")
    assert (indexing_slots.taken, indexing_slots.waiting) == (0, {})


def test_a_job_that_builds_an_index_beside_another_one_keeps_all_chunks(base, embedder, monkeypatch, settings):
    settings.KNOWLEDGE_JOBS_PER_WORKER = 2
    monkeypatch.setitem(embedders._local, "local/other", ("Other", other := WordEmbedder("local/other", 32)))
    document = add_text(base, "A", long_text(300))
    add_text(base, "B", long_text(3, "Switch"))
    run_jobs()
    count = document.chunks.count()
    assert BATCH_SIZE < count <= 2 * BATCH_SIZE
    base.embedder = other.name
    base.save()
    first, embed, second = enqueue_reindexing(base), other.embed, []

    def start_the_other_at_the_last_batch(texts, kind):
        if len(texts) == BATCH_SIZE:
            return embed(texts, kind)
        other.embed = fail_at_the_next_document
        second.append(enqueue_reindexing(base))
        run_claimed(str(second[0].pk))
        other.embed = embed
        return embed(texts, kind)

    def fail_at_the_next_document(texts, kind):
        if "Switch" in texts[0]:
            raise OSError(errno.ENOSPC, "No space left")
        return embed(texts, kind)

    other.embed = start_the_other_at_the_last_batch
    run_claimed(str(first.pk))
    Job.objects.filter(pk=second[0].pk).update(lease_until="2020-01-01T00:00Z")
    run_claimed(str(second[0].pk))

    base.refresh_from_db()
    assert base.live_index.embedder == other.name
    chunks = Chunk.objects.of_base(base).filter(document=document)
    assert [*chunks.order_by("number").values_list("number", flat=True)] == [*range(count)]


def test_a_base_that_gets_its_settings_back_during_a_rebuild_keeps_its_index(base, embedder, monkeypatch):
    monkeypatch.setitem(embedders._local, "local/other", ("Other", other := WordEmbedder("local/other", 32)))
    add_text(base, "Install", long_text(5))
    run_jobs()
    base.embedder = other.name
    base.save()
    enqueue_reindexing(base)
    embed = other.embed

    def change_back(texts, kind):
        other.embed = embed
        KnowledgeBase.objects.update(embedder=embedder.name)
        return embed(texts, kind)

    other.embed = change_back
    run_jobs()

    base.refresh_from_db()
    assert not base.is_outdated
    assert [*base.indexes.values_list("embedder", "is_building")] == [(embedder.name, False)]
    assert search_base(base, "Router number 1")


def test_a_document_that_is_deleted_before_its_turn_does_not_stop_the_indexing_of_a_base(base, monkeypatch):
    from knowledge_app.indexing import handlers

    for name in ("A", "B"):
        add_text(base, name, f"Text of {name}.")
    run_jobs()
    claim = handlers.claim_document

    def claim_and_delete(document_id, job):
        claimed = claim(document_id, job)
        Document.objects.filter(pk=document_id, name="A").delete()
        return claimed

    monkeypatch.setattr(handlers, "claim_document", claim_and_delete)
    job = enqueue_reindexing(base)
    run_jobs()

    job.refresh_from_db()
    assert (job.state, job.error) == ("done", "")


def test_a_worker_that_lost_its_job_keeps_the_content_that_came_meanwhile(base):
    document = add_text(base, "Install", "First text.")
    job = Job.objects.get(pk=document.job_id)
    job.state, job.attempts = Job.State.RUNNING, 1
    stalled = Document.objects.get(pk=document.pk)
    add_text(base, "Install", "Second text.")
    with contextlib.suppress(LeaseLost):
        index_document(stalled, job)
    run_jobs()

    document.refresh_from_db()
    assert (document.status, document.error, document.text) == ("ready", "", "Second text.")


def test_a_document_that_is_added_while_the_documents_are_counted_does_not_stop_the_indexing(base, monkeypatch):
    """There would be one more to index than there are in all."""
    add_text(base, "Router", "The router has a port.")
    run_jobs()
    count = DocumentQuerySet.count

    def count_and_add(rows):
        monkeypatch.setattr(DocumentQuerySet, "count", count)
        number = count(rows)
        add_text(base, "Switch", "The switch has ports.")
        return number

    job = enqueue_reindexing(base)
    monkeypatch.setattr(DocumentQuerySet, "count", count_and_add)
    run_claimed(str(job.pk))

    job.refresh_from_db()
    assert (job.state, job.error) == (Job.State.DONE, "")
