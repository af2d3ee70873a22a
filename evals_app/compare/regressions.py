"""The items of an experiment whose scores are lower than in an earlier one."""

from __future__ import annotations

from uuid import UUID

from evals_app.compare.pairs import load_figures, rank_items
from evals_app.models import Experiment


def find_baseline(experiment: Experiment) -> Experiment | None:
    """Return the last complete experiment before this one with its dataset and target, or None."""
    earlier = Experiment.objects.filter(
        dataset=experiment.dataset_id,
        target_type=experiment.target_type,
        target_id=experiment.target_id,
        status=Experiment.Status.COMPLETED,
        created_at__lt=experiment.created_at,
    )
    return earlier.order_by("-created_at").first()


def find_worse_items(baseline: Experiment, candidate: Experiment) -> list[UUID]:
    """Return the items that scored lower or failed only now, the worst first."""
    before, after = load_figures(baseline), load_figures(candidate)
    return [UUID(row["itemId"]) for row in rank_items(before, after) if row["change"] < 0]
