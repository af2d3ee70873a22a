"""Signal receivers of this app."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any
from uuid import UUID

from django.dispatch import receiver

from evals_app.datasets.purging import redact_copies_of_runs
from runs_app.models import AgentRun
from runs_app.privacy.personal_data import runs_forgotten


@receiver(runs_forgotten, sender=AgentRun)
def redact_copies(run_ids: Collection[UUID], **kwargs: Any) -> None:
    """Redact what datasets and experiments have of runs whose data is deleted on request."""
    redact_copies_of_runs(run_ids)
