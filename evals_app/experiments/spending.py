"""Spending and budgets of experiments: tokens and dollars of runs and scorers, also for answers that are not kept."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from decimal import Decimal
from typing import NamedTuple, TypeVar
from uuid import UUID

from django.db import transaction
from django.db.models import F

from agentcms.plural import pluralize
from agentcms.wire.json_types import JSONObject
from evals_app.models import Experiment, ExperimentResult
from runs_app.models import AgentRun, RunEvent
from runs_app.providers.prices import list_price

Number = TypeVar("Number", int, Decimal)


class Spent(NamedTuple):
    """Tokens and dollars. None: not known."""

    tokens: int | None = None
    cost: Decimal | None = None

    @property
    def is_known(self) -> bool:
        return self.tokens is not None or self.cost is not None


NOTHING_SPENT = Spent()


def sum_of(values: Iterable[Number | None]) -> Number | None:
    """Return the sum of the values that are there, or None if there are none."""
    numbers = [value for value in values if value is not None]
    return sum(numbers[1:], numbers[0]) if numbers else None


def total_spent(parts: Iterable[Spent]) -> Spent:
    rows = [*parts]
    return Spent(sum_of(row.tokens for row in rows), sum_of(row.cost for row in rows))


def run_tree(run: AgentRun) -> list[AgentRun]:
    """Return a run and those of its sub-agents, in the order of their ends."""
    children = AgentRun.objects.filter(root_id=run.pk).exclude(pk=run.pk).order_by("finished_at")
    return [run, *children.only("usage", "cost", "status", "error")]


def spent_by_runs(tree: Iterable[AgentRun]) -> Spent:
    """Return what runs have spent. A run whose process died has no figures: its finished steps count."""
    return total_spent(
        Spent(row.usage.get("totalTokens"), row.cost) if row.usage else spent_by_steps(row) for row in tree
    )


def spent_by_steps(run: AgentRun) -> Spent:
    """Return what the finished steps of a run have spent."""
    steps = run.events.filter(type=RunEvent.Type.STEP_FINISH).order_by("number").values_list("data", flat=True)
    return total_spent(spent_by_step(data.get("payload") or {}) for data in steps)


def spent_by_step(payload: JSONObject) -> Spent:
    """Return what a step has spent by the event of its end. The cost is that of the list prices of its model."""
    usage = (payload.get("output") or {}).get("usage") or {}
    model = (payload.get("metadata") or {}).get("modelId")
    return Spent(usage.get("totalTokens"), list_price(str(model), usage) if model and usage else None)


def spent_by_result(result: ExperimentResult) -> Spent:
    """Return what a result has spent, with its scorers."""
    return total_spent([Spent(result.tokens, result.cost), Spent(result.scores_tokens, result.scores_cost)])


def spent_by_results(results: Sequence[ExperimentResult]) -> Spent:
    return total_spent(map(spent_by_result, results))


@transaction.atomic
def add_earlier_spending(experiment_id: UUID, spent: Spent) -> None:
    """Count what was spent for answers that the experiment does not keep: those of lost, retried and stopped attempts.

    The figures of an experiment that has ended meanwhile grow too.
    """
    if not spent.is_known:
        return
    tokens, cost = spent.tokens or 0, spent.cost or Decimal(0)
    rows = Experiment.objects.filter(pk=experiment_id)
    rows.update(earlier_tokens=F("earlier_tokens") + tokens, earlier_cost=F("earlier_cost") + cost)
    # An open experiment gets its summary at its end, from the columns above.
    row = rows.exclude(status__in=Experiment.UNFINISHED).select_for_update().only("summary").first()
    if row is not None:
        grown: JSONObject = {name: row.summary.get(name, 0) + float(cost) for name in ("cost", "earlierCost")}
        grown |= {name: row.summary.get(name, 0) + tokens for name in ("tokens", "earlierTokens")}
        rows.update(summary={**row.summary, **grown})


# --- Budgets


def exceeded_budget(experiment: Experiment, spent: Spent = NOTHING_SPENT) -> str:
    """Return which limit of its budget an experiment has reached, or a blank text.

    `spent` is added to the spending of its stored results.
    """
    budget, summary = experiment.budget, experiment.summary
    # Above a limit, not at it: a budget of $0 allows what costs nothing.
    if (cost := budget.get("maxCost")) is not None and summary.get("cost", 0) + float(spent.cost or 0) > cost:
        return f"The budget of ${cost:g} is spent."
    if (tokens := budget.get("maxTokens")) is not None and summary.get("tokens", 0) + (spent.tokens or 0) > tokens:
        return f"The budget of {pluralize(tokens, 'token')} is spent."
    if (failures := budget.get("maxFailures")) is not None and experiment.failed_count >= failures:
        return f"{pluralize(experiment.failed_count, 'item')} failed."
    if (in_a_row := budget.get("maxConsecutiveFailures")) is not None and fails_in_a_row(experiment, in_a_row):
        return f"{pluralize(in_a_row, 'item')} failed in a row."
    return ""


def fails_in_a_row(experiment: Experiment, count: int) -> bool:
    """Return whether the last results are all failures."""
    if experiment.failed_count < count:
        return False
    done = experiment.results.filter(state=ExperimentResult.State.DONE).order_by("-completed_at")
    return all(error is not None for error in done.values_list("error", flat=True)[:count])
