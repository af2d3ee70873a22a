"""How long runs and conversations are kept."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.conf import settings
from django.db.models import QuerySet
from django.utils import timezone

from jobs_app.cleanup import expired_rows
from runs_app.models import AgentRun, Thread


@expired_rows("runs")
def expired_runs() -> QuerySet[Any]:
    """Runs that ended long ago; a child goes with its parent."""
    return AgentRun.objects.filter(finished_at__lt=timezone.now() - timedelta(days=settings.RUN_DAYS))


@expired_rows("threads")
def expired_threads() -> QuerySet[Any]:
    """Conversations in which nobody has said anything for long."""
    return Thread.objects.filter(updated_at__lt=timezone.now() - timedelta(days=settings.THREAD_DAYS))
