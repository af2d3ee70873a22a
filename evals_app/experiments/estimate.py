"""The estimated cost of an experiment, from the last runs of an agent."""

from __future__ import annotations

from typing import NamedTuple

from evals_app.models import Dataset
from runs_app.models import AgentRun

LAST_RUNS = 20


class Estimate(NamedTuple):
    """The cost of one pass over a dataset in dollars. `run_count` is the number of runs behind it."""

    agent_id: str
    cost: float | None
    run_count: int


def estimate_cost(agent_id: str, dataset: Dataset, repeats: int = 1) -> Estimate:
    """Return the estimated cost. It is None if no run of the agent has a cost."""
    runs = AgentRun.objects.filter(agent_id=agent_id, cost__isnull=False).order_by("-created_at")
    costs = [float(cost) for cost in runs.values_list("cost", flat=True)[:LAST_RUNS] if cost is not None]
    mean = sum(costs) / len(costs) if costs else None
    total = None if mean is None else mean * dataset.item_count * repeats
    return Estimate(agent_id, total, len(costs))
