"""Cleanup of old runs and steps."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.conf import settings
from django.db.models import QuerySet
from django.utils import timezone

from jobs_app.cleanup import expired_rows
from runs_app.models import AgentRun, RunStep


@expired_rows("runs")
def expired_runs() -> QuerySet[Any]:
    """Return runs that ended more than RUN_DAYS ago. Child runs are deleted with their parents."""
    return AgentRun.objects.filter(finished_at__lt=timezone.now() - timedelta(days=settings.RUN_DAYS))


@expired_rows("run steps")
def expired_steps() -> QuerySet[Any]:
    """Return the steps of durable runs that ended more than RUN_STEP_DAYS ago. Nobody continues these runs."""
    return RunStep.objects.filter(run__finished_at__lt=timezone.now() - timedelta(days=settings.RUN_STEP_DAYS))
