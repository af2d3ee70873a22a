"""The results of two experiments by item."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from uuid import UUID

from agentcms.wire.json_types import JSONObject
from evals_app.compare.statistics import adjust_for_many, compare_pairs, mean
from evals_app.experiments.figures import percentile
from evals_app.models import Experiment, ExperimentResult
from evals_app.scorers.directions import find_inverted_scorers

# More digits come from the arithmetic: 0.3 - 0.2 is 0.09999999999999998.
MAX_DIGITS = 12


@dataclass
class ItemFigures:
    """The figures of an item in one experiment. Repeats are averaged."""

    scores: dict[str, list[float]] = field(default_factory=dict)
    not_scorable: set[str] = field(default_factory=set)  # the scorers that could not score an answer
    scorer_errors: set[str] = field(default_factory=set)  # the scorers that failed for an answer
    durations: list[float] = field(default_factory=list)
    costs: list[float] = field(default_factory=list)
    failed: bool = False

    def score(self, scorer: str) -> float | None:
        return mean(self.scores.get(scorer, []))


def load_figures(experiment: Experiment) -> dict[UUID, ItemFigures]:
    """Return the figures of each item of an experiment."""
    done = experiment.results.filter(state=ExperimentResult.State.DONE).order_by("item_id", "attempt")
    items: dict[UUID, ItemFigures] = {}
    for item_id, scores, error, duration, cost in done.values_list(
        "item_id", "scores", "error", "duration_ms", "cost"
    ).iterator(500):
        figures = items.setdefault(item_id, ItemFigures())
        figures.failed |= error is not None
        for entry in scores:
            if entry["score"] is not None:
                figures.scores.setdefault(entry["scorerId"], []).append(entry["score"])
            else:
                unscored = figures.scorer_errors if entry.get("error") else figures.not_scorable
                unscored.add(entry["scorerId"])
        # 0 is the duration of an item that could not run or was stopped, which would seem the fastest.
        figures.durations += [float(duration)] if duration else []
        figures.costs += [float(cost)] if cost is not None else []
    return items


def compute_statistics(baseline: Experiment, candidate: Experiment) -> JSONObject:
    """Return the statistics of two experiments, paired by item. Items of one side are listed and not averaged in."""
    before, after = load_figures(baseline), load_figures(candidate)
    inverted = find_inverted_scorers(baseline, candidate)
    both = [item_id for item_id in before if item_id in after]
    # Also those that failed for every answer: nobody would see that they are missing.
    keys = sorted(
        {key for side in (before, after) for row in side.values() for key in (*row.scores, *row.scorer_errors)}
    )
    scorers = {key: _compare(key, both, before, after, key in inverted) for key in keys}
    adjust_for_many(scorers)
    return {
        "pairs": len(both),
        "onlyBaseline": [str(item_id) for item_id in before if item_id not in after],
        "onlyCandidate": [str(item_id) for item_id in after if item_id not in before],
        "scorers": scorers,
        "durationMs": _measures([before[i].durations for i in both], [after[i].durations for i in both]),
        "cost": _measures([before[i].costs for i in both], [after[i].costs for i in both]),
        "items": rank_items(before, after, inverted),
    }


def _compare(
    key: str,
    both: Iterable[UUID],
    before: dict[UUID, ItemFigures],
    after: dict[UUID, ItemFigures],
    lower_is_better: bool,
) -> JSONObject:
    pairs = [(before[item_id].score(key), after[item_id].score(key)) for item_id in both]
    scored = [(a, b) for a, b in pairs if a is not None and b is not None]
    statistics = compare_pairs([a for a, _ in scored], [b for _, b in scored])
    sides = (("baseline", before), ("candidate", after))
    counts = {f"{name}NotScorable": sum(key in side[i].not_scorable for i in both) for name, side in sides}
    counts |= {f"{name}Errors": sum(key in side[i].scorer_errors for i in both) for name, side in sides}
    if lower_is_better:
        statistics |= {"better": statistics["worse"], "worse": statistics["better"]}
    return {**statistics, **counts, "lowerIsBetter": lower_is_better}


def _measures(before: list[list[float]], after: list[list[float]]) -> JSONObject:
    """Return the means, medians and 95th percentiles of a measure, and the statistics of its pairs."""
    pairs = [(mean(a), mean(b)) for a, b in zip(before, after, strict=True)]
    known = [(a, b) for a, b in pairs if a is not None and b is not None]
    statistics = compare_pairs([a for a, _ in known], [b for _, b in known])
    for name, side in (("baseline", [a for a, _ in known]), ("candidate", [b for _, b in known])):
        statistics[f"{name}Median"], statistics[f"{name}P95"] = percentile(side, 0.5), percentile(side, 0.95)
    return statistics


def rank_items(
    before: dict[UUID, ItemFigures], after: dict[UUID, ItemFigures], inverted: Collection[str]
) -> list[JSONObject]:
    """Return the items of both sides with the difference of their mean scores, those that got worse first.

    A higher score of an `inverted` scorer is worse.
    """
    rows = []
    for item_id in (item_id for item_id in before if item_id in after):
        changes = []
        for key in before[item_id].scores:
            a, b = before[item_id].score(key), after[item_id].score(key)
            if a is not None and b is not None:
                changes.append(round(a - b if key in inverted else b - a, MAX_DIGITS))
        # An item that failed only now got worse than any score can say.
        failure = after[item_id].failed - before[item_id].failed
        rows.append({"itemId": str(item_id), "change": (mean(changes) or 0.0) - failure})
    return sorted(rows, key=lambda row: row["change"])
