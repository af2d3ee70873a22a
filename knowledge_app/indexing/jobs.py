"""The kinds of jobs that index documents, and their start. Handlers are in `handlers`."""

from __future__ import annotations

from access_app.caller import Caller
from agentcms.ids import uuid7
from jobs_app.models import Job
from jobs_app.runner import enqueue, enqueue_unless_queued
from knowledge_app.models import Document, KnowledgeBase

INDEX_DOCUMENT = "index_document"
REINDEX_BASE = "reindex_knowledge"


def enqueue_indexing(document: Document, user: Caller | None = None) -> Job:
    """Index a document in a job. Call it in the transaction that stores the document.

    An earlier job of the document stops: only the job whose ID the document has may write its chunks.
    """
    job_id = uuid7()
    document.job_id = job_id
    Document.objects.filter(pk=document.pk).update(job_id=job_id)
    return enqueue(INDEX_DOCUMENT, {"document": str(document.pk)}, requested_by=user, job_id=job_id)


def enqueue_reindexing(base: KnowledgeBase, user: Caller | None = None) -> Job:
    """Index all documents of a base in a job: into another index if the settings changed since this one."""
    return enqueue_unless_queued(REINDEX_BASE, {"base": base.pk}, user)
