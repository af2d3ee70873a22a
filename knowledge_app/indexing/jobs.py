"""The kinds of jobs that index documents, and their start. Handlers are in `handlers`."""

from __future__ import annotations

from access_app.caller import Caller
from agentcms.ids import uuid7
from jobs_app.models import MAX_ATTEMPTS, Job
from jobs_app.runner import enqueue, enqueue_unless_queued
from knowledge_app.models import Document, KnowledgeBase

INDEX_DOCUMENT = "index_document"
REINDEX_BASE = "reindex_knowledge"


def enqueue_document_indexing(document: Document, user: Caller | None = None) -> Job:
    """Index a document in a job. Call it in the transaction that stores the document.

    A job of the document that waits will index what is stored now. One that runs stops: only the job whose ID the
    document has may write its chunks.
    """
    if (waiting := lock_waiting_job(document)) is not None:
        return waiting
    job_id = uuid7()
    document.job_id = job_id
    Document.objects.filter(pk=document.pk).update(job_id=job_id)
    return enqueue(INDEX_DOCUMENT, {"document": str(document.pk)}, requested_by=user, job_id=job_id)


def lock_waiting_job(document: Document) -> Job | None:
    """Return the job of a document that no worker has begun. Workers wait for the end of the transaction."""
    if document.job_id is None:
        return None
    jobs = Job.objects.select_for_update().filter(pk=document.job_id, kind=INDEX_DOCUMENT)
    return jobs.filter(state=Job.State.QUEUED, attempts__lt=MAX_ATTEMPTS).first()


def enqueue_reindexing(base: KnowledgeBase, user: Caller | None = None) -> Job:
    """Index all documents of a base in a job: into another index if the settings changed since this one."""
    return enqueue_unless_queued(REINDEX_BASE, {"base": base.pk}, user)
