"""Signal receivers of this app."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from uuid import UUID

from django.dispatch import receiver

from evals_app.datasets.purging import redact_copies_of_resource, redact_copies_of_runs
from memory_app.models import Resource
from runs_app.models import AgentRun
from runs_app.privacy.forgetting import resource_forgotten, runs_forgotten


@receiver(runs_forgotten, sender=AgentRun)
def redact_copies(run_ids: Collection[UUID], **kwargs: object) -> None:
    """Redact what datasets and experiments have of runs whose data is deleted on request."""
    redact_copies_of_runs(run_ids)


@receiver(resource_forgotten, sender=Resource)
def redact_copies_of_deleted_runs(digest: str, before: datetime, **kwargs: object) -> None:
    """Redact what datasets and experiments have of runs of a forgotten resource that were deleted earlier."""
    redact_copies_of_resource(digest, before)
