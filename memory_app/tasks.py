"""Celery tasks of conversations. Importing this module also registers the job handlers of conversations."""

from __future__ import annotations

from datetime import timedelta

from celery import shared_task

from jobs_app.runner import enqueue_once_per_period
from memory_app import cleanup  # noqa: F401  registers its expired rows
from memory_app.recall import indexing


@shared_task
def index_missing_messages() -> None:
    """Start the nightly indexing of messages that have no vectors yet, once even with several beats."""
    enqueue_once_per_period(indexing.INDEX_MISSING, timedelta(hours=12))
