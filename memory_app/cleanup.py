"""Cleanup of old conversations."""

from __future__ import annotations

from datetime import timedelta

from django.conf import settings
from django.db.models import Exists, OuterRef, QuerySet
from django.utils import timezone

from jobs_app.cleanup import expired_rows
from memory_app.models import Resource, Thread, Vector
from memory_app.recall.options import used_embedders

THREADS_PER_BATCH = 50  # each may have thousands of messages, which Django loads by their keys to delete them
OLD_VECTOR_DAYS = 30  # for which an agent can return to its earlier embedder without indexing again


@expired_rows("threads", per_batch=THREADS_PER_BATCH)
def expired_threads() -> QuerySet[Thread]:
    """Return conversations without a new message for THREAD_DAYS."""
    return Thread.objects.filter(updated_at__lt=timezone.now() - timedelta(days=settings.THREAD_DAYS))


@expired_rows("resources")
def unused_resources() -> QuerySet[Resource]:
    """Return resources without threads that nobody used for THREAD_DAYS, with their working memory.

    Those with runs stay: without the row, nobody finds the runs to export or delete the data of the resource.
    """
    limit = timezone.now() - timedelta(days=settings.THREAD_DAYS)
    return Resource.objects.filter(threads=None, runs=None, updated_at__lt=limit)


@expired_rows("vectors")
def replaced_vectors() -> QuerySet[Vector]:
    """Return the vectors of embedders that no agent uses, 30 days after another one has embedded the message."""
    used, limit = used_embedders(), timezone.now() - timedelta(days=OLD_VECTOR_DAYS)
    newer = Vector.objects.filter(message=OuterRef("message"), embedder__in=used, created_at__lt=limit)
    return Vector.objects.exclude(embedder__in=used).filter(Exists(newer))
