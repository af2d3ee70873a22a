"""Cleanup of old conversations."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.conf import settings
from django.db.models import QuerySet
from django.utils import timezone

from jobs_app.cleanup import expired_rows
from memory_app.models import Thread


@expired_rows("threads")
def expired_threads() -> QuerySet[Any]:
    """Return conversations without a new message for THREAD_DAYS."""
    return Thread.objects.filter(updated_at__lt=timezone.now() - timedelta(days=settings.THREAD_DAYS))
