"""The estimated cost of an experiment, from the last runs of an agent and the last scores of judges."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import reduce
from operator import or_
from statistics import fmean
from typing import NamedTuple
from uuid import UUID

from django.core.exceptions import PermissionDenied
from django.db.models import Q, Sum

from access_app.caller import Caller
from agentcms.errors import ApiError
from agentcms.wire.json_types import JSONMapping, JSONObject
from evals_app.experiments.direct.targets import Callee
from evals_app.experiments.targets import resolve_target
from evals_app.models import Dataset, Experiment, ExperimentResult, Scorer, ScorerVersion
from evals_app.scorers.kinds.pipelines import has_prompt
from evals_app.scorers.settings import settings_of
from runs_app.display.formats import model_name
from runs_app.models import AgentRun, Score
from runs_app.providers.prices import has_known_price
from versions_app.models import AgentVersion

LAST_RUNS = 20
KINDS_WITHOUT_MODEL = ("check", "trajectory")  # of stored scorers

UNPRICED_MESSAGE = (
    "The price of {models} is not known, so maxCost does not limit what it costs. Set maxTokens as well."
)


class Estimate(NamedTuple):
    """The cost of an experiment in dollars. `run_count` is the number of runs behind it.

    The cost is None if no run of the agent has one. `scorer_cost` is the part of the scorers, and `unknown_scorers`
    has the names of those that ask a model and have no known cost.
    """

    agent_id: str
    cost: float | None
    run_count: int
    scorer_cost: float = 0.0
    unknown_scorers: tuple[str, ...] = ()


def estimate_cost(agent_id: str, dataset: Dataset, repeats: int = 1, scorers: Collection[str] = ()) -> Estimate:
    """Return the estimated cost of an experiment with these scorers."""
    runs = AgentRun.objects.filter(agent_id=agent_id, cost__isnull=False).order_by("-created_at")
    costs = dict(runs.values_list("pk", "cost")[:LAST_RUNS])
    by_scorer = costs_of_scorers(dataset, scorers, [*costs])
    count = dataset.item_count * repeats
    scorer_cost = count * sum(map(fmean, by_scorer.values()))
    unknown = unknown_scorers([key for key in scorers if key not in by_scorer])
    if not costs:
        return Estimate(agent_id, None, 0, scorer_cost, unknown)
    # The cost of a run has not that of its sub-agents in it.
    children = AgentRun.objects.filter(root_id__in=[*costs]).exclude(pk__in=[*costs])
    below = children.aggregate(cost=Sum("cost"))["cost"] or 0
    of_runs = count * float(sum(cost or 0 for cost in costs.values()) + below) / len(costs)
    return Estimate(agent_id, of_runs + scorer_cost, len(costs), scorer_cost, unknown)


def costs_of_scorers(dataset: Dataset, scorers: Collection[str], runs: Sequence[UUID]) -> dict[str, list[float]]:
    """Return the costs of the last scores over a dataset and over some runs, by the key of the scorer."""
    results = ExperimentResult.objects.filter(experiment__dataset=dataset, scores_cost__isnull=False)
    entries = [entry for row in results.order_by("-pk").values_list("scores", flat=True)[:LAST_RUNS] for entry in row]
    scores = Score.objects.filter(run__in=runs, scorer__in=scorers, cost__isnull=False)
    pairs = [(entry["scorerId"], entry.get("cost")) for entry in entries] + [*scores.values_list("scorer", "cost")]
    costs: dict[str, list[float]] = {}
    for key, cost in pairs:
        if key in scorers and cost is not None:
            costs.setdefault(key, []).append(float(cost))
    return costs


def unknown_scorers(keys: Sequence[str]) -> tuple[str, ...]:
    """Return the names of the stored scorers among these that ask a model."""
    rows = Scorer.objects.filter(pk__in=keys, live__isnull=False).select_related("live").order_by("pk")
    snapshots = [row.live.snapshot for row in rows if row.live is not None]
    return tuple(snapshot["name"] for snapshot in snapshots if model_of_scorer(snapshot))


def find_unlimited_cost(experiment: Experiment, user: Caller) -> str:
    """Return that a limit of the cost has no effect on models without a known price, or a blank text.

    The models are those of the target, of its sub-agents and of the scorers, except those that depend on the request
    context.
    """
    if experiment.budget.get("maxCost") is None:
        return ""
    models = [*models_of_target(experiment, user), *models_of_scorers(experiment)]
    names = sorted({model_name(model) for model in models if not has_known_price(model)})
    return UNPRICED_MESSAGE.format(models=", ".join(names)) if names else ""


def models_of_target(experiment: Experiment, user: Caller) -> list[JSONObject]:
    """Return the models that the target of an experiment asks, with those of its sub-agents."""
    try:
        target = resolve_target(experiment, user)
    except (ApiError, PermissionDenied):  # deleted, or without the right to run it
        return []
    if isinstance(target, Callee):
        return [model] if target.version and (model := model_of_scorer(target.version.snapshot)) else []
    below = AgentVersion.objects.filter(pk__in=[*experiment.sub_agent_versions.values()])
    configurations = [target.configuration, *(version.snapshot for version in below)]
    fixed = [row.get("model") or {} for row in configurations if not (row.get("conditional") or {}).get("model")]
    return [model for model in fixed if model]


def models_of_scorers(experiment: Experiment) -> list[JSONObject]:
    """Return the models that the stored scorers of an experiment ask."""
    # An item may name a scorer of another team, of which nothing may be told.
    scorers = Scorer.objects.usable_by(experiment.dataset.owner_id)
    pinned = [Q(scorer=key, version_number=number) for key, number in experiment.scorer_versions.items()]
    versions = ScorerVersion.objects.filter(reduce(or_, pinned, Q(pk__in=[])), scorer__in=scorers)
    return [model for version in versions if (model := model_of_scorer(version.snapshot))]


def model_of_scorer(snapshot: JSONMapping) -> JSONObject:
    """Return the model that a scorer asks, or an empty object if it asks none."""
    if snapshot["type"] in KINDS_WITHOUT_MODEL:
        return {}
    if snapshot["type"] == "pipeline" and not has_prompt(settings_of(snapshot)):
        return {}
    model: JSONObject = snapshot.get("model") or {}
    return model if model.get("provider") and model.get("name") else {}  # without both, every score is an error
