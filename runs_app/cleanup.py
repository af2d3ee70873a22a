"""Cleanup of old runs and steps."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, cast

from django.conf import settings
from django.db.models import Exists, OuterRef, Q, QuerySet
from django.utils import timezone

from jobs_app.cleanup import cleanup_step, expired_rows
from runs_app.engine.runners import get_runner
from runs_app.models import AgentRun, PendingCall, RunConfiguration, RunStep
from runs_app.models.run_configuration import UNUSED_PERIOD

if TYPE_CHECKING:
    from runs_app.engine.runners.dbos import DbosRunner


@expired_rows("runs")
def expired_runs() -> QuerySet[AgentRun]:
    """Return runs that ended more than RUN_DAYS ago. Child runs are deleted with the first run of their tree.

    A run may wait for people for days after its sub-agents have ended. A sub-agent in the background may wait for a
    person when its parent has ended. Then all runs of the tree stay.
    """
    limit = timezone.now() - timedelta(days=settings.RUN_DAYS)
    keeping = AgentRun.objects.filter(Q(finished_at=None) | Q(parent=None, finished_at__gte=limit))
    ended = AgentRun.objects.filter(finished_at__lt=limit)
    # Only the key: Django loads the rows that it deletes, and runs may be long.
    return ended.filter(~Exists(keeping.filter(root_id=OuterRef("root_id")))).only("pk")


@expired_rows("run steps")
def expired_steps() -> QuerySet[RunStep]:
    """Return the steps of durable runs that ended more than RUN_STEP_DAYS ago. Nobody continues these runs."""
    return RunStep.objects.filter(run__finished_at__lt=timezone.now() - timedelta(days=settings.RUN_STEP_DAYS))


@expired_rows("approvals")
def expired_approvals() -> QuerySet[PendingCall]:
    """Return decided calls that began to wait more than APPROVAL_LOG_DAYS ago. Their runs are deleted earlier."""
    decided = PendingCall.objects.exclude(state=PendingCall.State.OPEN)
    return decided.filter(created_at__lt=timezone.now() - timedelta(days=settings.APPROVAL_LOG_DAYS))


@expired_rows("unused run configurations")  # after the runs, in the order of these names
def unused_configurations() -> QuerySet[RunConfiguration]:
    """Return the configurations of runs that were deleted."""
    return RunConfiguration.objects.filter(used_at__lt=timezone.now() - UNUSED_PERIOD, runs=None).only("pk")


@cleanup_step
def clear_conversations() -> None:
    """Clear what the segments of runs needed that ended more than RUN_STEP_DAYS ago."""
    ended = AgentRun.objects.filter(finished_at__lt=timezone.now() - timedelta(days=settings.RUN_STEP_DAYS))
    ended.filter(conversation__isnull=False).update(conversation=None)


@cleanup_step
def delete_old_workflows() -> None:
    """Delete the workflows of DBOS that were enqueued more than RUN_STEP_DAYS ago and that no run can need."""
    if settings.RUN_ENGINE == "dbos":
        age = timedelta(days=settings.RUN_STEP_DAYS, seconds=settings.RUN_TIMEOUT)
        cast("DbosRunner", get_runner()).delete_workflows_before(timezone.now() - age)
