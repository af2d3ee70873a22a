"""The jobs that index documents."""

from __future__ import annotations

import logging
from collections.abc import Callable
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.db.models import Exists, OuterRef
from django.utils import timezone

from agentcms.errors import ApiError, NotFound
from agentcms.vectors import EmbedderFailed
from agentcms.wire.json_types import JSONObject
from jobs_app.models import Job, LeaseLost
from jobs_app.runner import is_transient, job_handler
from jobs_app.slots import JobSlots
from knowledge_app.approximate.hnsw import enqueue_if_large
from knowledge_app.documents.errors import DocumentError
from knowledge_app.documents.preparation import prepare_document
from knowledge_app.indexing.document_chunks import (
    DocumentFill,
    Fence,
    Superseded,
    document_fence,
    is_document_indexed,
    lock_base,
    lock_row,
    own_document_fence,
)
from knowledge_app.indexing.jobs import INDEX_DOCUMENT, REINDEX_BASE
from knowledge_app.indexing.rebuild import begin_rebuild, copy_sent_chunks, finish_rebuild
from knowledge_app.models import Chunk, Document, KnowledgeBase, KnowledgeIndex

log = logging.getLogger(__name__)

indexing_slots = JobSlots(lambda: settings.KNOWLEDGE_JOBS_PER_WORKER)
SUPERSEDED_RESULT = {"skipped": True}
GIVEN_UP_MESSAGE = "The indexing was interrupted too often. Index the knowledge base again, or divide the document."
UNEXPECTED_MESSAGE = "An unexpected error stopped the indexing. The operator of the server finds it in the log."


def fail_documents_of_job(job: Job) -> None:
    """Note that the documents of a job are not indexed, because no attempt of it came to its end."""
    documents = Document.objects.filter(job_id=job.pk).waiting()
    documents.update(status=Document.Status.FAILED, error=GIVEN_UP_MESSAGE)


@job_handler(INDEX_DOCUMENT, "Indexing of a document", fail_documents_of_job)
def run_indexing(job: Job) -> object:
    """Index one document, unless it was deleted or a newer job has it."""
    documents = Document.objects.filter(pk=job.parameters["document"])
    owner_id = documents.values_list("base__owner_id", flat=True).first()
    return indexing_slots.run(job, index_document_of_job, owner_id or "")


def index_document_of_job(job: Job) -> JSONObject:
    documents = Document.objects.filter(pk=job.parameters["document"], job_id=job.pk)
    document = documents.select_related("base").first()
    if document is None:
        return SUPERSEDED_RESULT
    return index_document(document, job)


def index_document(document: Document, job: Job) -> JSONObject:
    """Index a document in the live index of its base. Store why it failed, and raise that as the error of the job."""
    rows = Document.objects.filter(pk=document.pk, job_id=document.job_id)
    rows.update(status=Document.Status.INDEXING, error="")
    try:
        prepare_document(document, leased_fence(own_document_fence(document), job))
        return fill_live_index(document, job)
    except Superseded:
        return SUPERSEDED_RESULT
    except LeaseLost:  # the worker that has the job now goes on with the document
        raise
    except Exception as error:
        if is_transient(error):  # the job is repeated
            raise
        message = indexing_failure_message(document, error)
        rows.update(status=Document.Status.FAILED, error=message)
        raise DocumentError(message) from error


def indexing_failure_message(document: Document, error: Exception) -> str:
    """Return why a document could not be indexed. Log an error that neither the document nor an embedder caused."""
    if isinstance(error, ApiError | EmbedderFailed):
        return str(error)
    log.error("Document %s could not be indexed.", document.pk, exc_info=error)
    return UNEXPECTED_MESSAGE


def fill_live_index(document: Document, job: Job) -> JSONObject:
    """Index a prepared document in the index that searches read, also if that is replaced meanwhile."""
    while True:
        index = get_live_index(document)
        unchanged = is_document_indexed(document, index)
        if not unchanged:
            try:
                fill_index(document, index, job)
            except Superseded:
                # Only if the document is another job's. A rebuild that replaced the index has not marked it as ready.
                if get_live_index(document) == index:
                    raise
                continue
        with transaction.atomic():
            base = KnowledgeBase.objects.select_for_update().only("index").filter(pk=document.base_id).first()
            if base is None:
                raise Superseded
            # Under the lock of the base: a rebuild that ended meanwhile left the document in the old index.
            if base.index_id == index.pk:
                count = Chunk.objects.filter(index=index, document=document, is_pending=False).count()
                mark_ready(document, count)
                enqueue_if_large(index)
                return {"chunks": count, "unchanged": unchanged}


def fill_index(document: Document, index: KnowledgeIndex, job: Job) -> None:
    """Make the chunks of a document in an index, and report the progress of its job."""
    fence = leased_fence(document_fence(document, index), job)
    DocumentFill(document, index, fence, progress_of(document, job)).run()


def get_live_index(document: Document) -> KnowledgeIndex:
    """Return the index that searches read. Raise Superseded if the base was deleted."""
    # One query: a rebuild deletes the index that it replaces.
    live = KnowledgeBase.objects.filter(pk=document.base_id).values("index")
    index = KnowledgeIndex.objects.filter(pk__in=live).first()
    if index is None:
        raise Superseded
    return index


def mark_ready(document: Document, count: int) -> None:
    Document.objects.filter(pk=document.pk, job_id=document.job_id).update(
        status=Document.Status.READY, error="", chunk_count=count, done_chunks=0, indexed_at=timezone.now()
    )


def progress_of(document: Document, job: Job) -> Callable[[int, int], None]:
    """Return a function that reports the progress of one document. A job of all documents counts these instead."""

    def report(done: int, total: int) -> None:
        Document.objects.filter(pk=document.pk, job_id=document.job_id).update(done_chunks=done, chunk_count=total)
        if job.kind == INDEX_DOCUMENT:
            job.report_progress(done=done, total=total)
        else:
            renew_lease(job)

    return report


def leased_fence(fence: Fence, job: Job) -> Fence:
    """Return a fence that also renews the lease of its job. It raises LeaseLost if another worker has the job."""

    def lock() -> None:
        fence()
        # Last: whoever replaces a document locks its base first, and then its job.
        renew_lease(job)

    return lock


def renew_lease(job: Job) -> None:
    """Keep the progress of a job and renew its lease, during one of its documents. Raise LeaseLost."""
    job.report_progress(done=job.done)


def get_base_of_job(job: Job) -> KnowledgeBase:
    """Return the knowledge base of a job. Raise NotFound if it was deleted."""
    base = KnowledgeBase.objects.filter(pk=job.parameters["base"]).first()
    if base is None:
        raise NotFound("The knowledge base was deleted.")
    return base


@job_handler(REINDEX_BASE, "Indexing of a knowledge base", fail_documents_of_job)
def run_reindexing(job: Job) -> object:
    """Index all documents of a base again: fetch those by URL, and embed only what has no vector yet.

    If the settings changed, all of it goes into another index, which then replaces the live one.
    """
    owner_id = KnowledgeBase.objects.filter(pk=job.parameters["base"]).values_list("owner_id", flat=True).first()
    return indexing_slots.run(job, reindex_base_of_job, owner_id or "")


def reindex_base_of_job(job: Job) -> JSONObject:
    report = update_documents(get_base_of_job(job), job)
    base = get_base_of_job(job)  # it may have been changed or deleted meanwhile
    if base.is_outdated:
        try:
            rebuild(base, job)
        except Superseded:
            return {**report, **SUPERSEDED_RESULT}
    return report


def update_documents(base: KnowledgeBase, job: Job) -> JSONObject:
    """Index each document whose content changed. Continue after the last one of an earlier attempt."""
    documents = base.documents.order_by("pk")
    rest = documents.filter(pk__gt=job.cursor) if job.cursor else documents
    ids = [*rest.values_list("pk", flat=True)]
    # Not all documents without these: others may be added or deleted between two queries.
    earlier = documents.filter(pk__lte=job.cursor).count() if job.cursor else 0
    total, failed = earlier + len(ids), 0
    job.report_progress(done=earlier, total=total)
    for done, document_id in enumerate(ids, 1 + earlier):
        if (document := claim_document(document_id, job)) is not None:
            try:
                index_document(document, job)
            except DocumentError:
                failed += 1
        job.report_progress(done=done, total=total, cursor=str(document_id))
    return {"documents": total, "failed": failed}


def claim_document(document_id: UUID | str, job: Job) -> Document | None:
    """Make a document that of this job, and return it, unless it was deleted or a job of its own waits or runs."""
    own_job = Job.objects.unfinished().filter(pk=OuterRef("job_id")).exclude(pk=job.pk)
    Document.objects.filter(pk=document_id).filter(~Exists(own_job)).update(job_id=job.pk)
    return Document.objects.select_related("base").filter(pk=document_id, job_id=job.pk).first()


def rebuild(base: KnowledgeBase, job: Job) -> None:
    """Fill another index with all documents, and let it replace the live one. Raise Superseded."""
    index, copied = begin_rebuild(base), 0
    while True:
        copied = copy_sent_chunks(base, index, copied, job)
        documents = finish_rebuild(base, index, copied)
        if documents is None:
            break
        job.report_progress(done=0, total=len(documents))
        for number, document_id in enumerate(documents, 1):
            fill_building_index(document_id, index, job)
            job.report_progress(done=number, total=len(documents))
    enqueue_if_large(index)


def fill_building_index(document_id: UUID, index: KnowledgeIndex, job: Job) -> None:
    """Make the chunks of a document in an index that is built, unless the document is deleted meanwhile."""
    document = Document.objects.filter(pk=document_id).first()
    if document is None:
        return
    fence = leased_fence(building_fence(index, document), job)
    try:
        DocumentFill(document, index, fence, lambda done, total: renew_lease(job)).run()
    except Superseded:
        if Document.objects.filter(pk=document_id).exists():
            raise


def building_fence(index: KnowledgeIndex, document: Document) -> Fence:
    """Return the fence of the job that builds an index, for one of its documents."""

    def lock() -> None:
        lock_base(index.base_id)
        lock_row(Document.objects.filter(pk=document.pk))
        lock_row(KnowledgeIndex.objects.filter(pk=index.pk, is_building=True))

    return lock
