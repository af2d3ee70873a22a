"""The figures of an experiment: its scores, cost and durations."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import TypedDict
from uuid import UUID

from django.db.models import Count, Q, Sum

from agentcms.wire.json_types import JSONObject
from evals_app.models import Experiment, ExperimentResult
from evals_app.scorers.directions import find_inverted_scorers
from evals_app.scorers.results import FAILED, PASSED

PASS = 1.0
# More digits come from the arithmetic: the mean of 0.7, 0.8 and 0.9 is a little less than 0.8.
SCORE_DIGITS = 12  # of a score that is compared with a bar
LOWEST = 0.0  # the best score of a scorer that is better the lower it scores
# The 97.5 % quantiles of Student's t with 1 to 30 degrees of freedom. scipy has them too, but takes long to import,
# and web processes draw intervals.
T_QUANTILES = (
    *(12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228),
    *(2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086),
    *(2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042),
)
Earlier = tuple[Decimal, int]  # the cost and the tokens
SUMMARY_COLUMNS = ("scores", "duration_ms", "tokens", "cost", "scores_tokens", "scores_cost")


class ResultCounts(TypedDict):
    """The numbers of finished items, and what all runs and scorers have cost."""

    succeeded: int
    failed: int
    cost: Decimal
    tokens: int


def count_results(experiment: Experiment, earlier: Earlier | None = None) -> ResultCounts:
    """Return the numbers of finished items, and the cost and tokens so far of all runs and scorers.

    `earlier` is the earlier spending, if it was read already.
    """
    done = experiment.results.filter(state=ExperimentResult.State.DONE)
    figures = done.aggregate(
        succeeded=Count("pk", filter=Q(error__isnull=True)),
        failed=Count("pk", filter=Q(error__isnull=False)),
        cost=Sum("cost", default=Decimal(0)) + Sum("scores_cost", default=Decimal(0)),
        tokens=Sum("tokens", default=0) + Sum("scores_tokens", default=0),
    )
    earlier_cost, earlier_tokens = earlier or earlier_spending(experiment)
    return {
        "succeeded": figures["succeeded"],
        "failed": figures["failed"],
        "cost": figures["cost"] + earlier_cost,
        "tokens": figures["tokens"] + earlier_tokens,
    }


def find_known_cost(experiment: Experiment, cost: Decimal | float | None) -> Decimal | float | None:
    """Return a cost of an experiment, or None if it is not known: results submitted from outside tell no cost."""
    return None if experiment.has_submitted_results and not cost else cost


def earlier_spending(experiment: Experiment) -> Earlier:
    """Return the cost and the tokens of attempts that no longer have a result, as the row has them now."""
    rows = Experiment.objects.filter(pk=experiment.pk)
    return rows.values_list("earlier_cost", "earlier_tokens").first() or (Decimal(0), 0)


def count_scorer_errors(experiment: Experiment) -> int:
    """Return the number of scores of an experiment that failed, by its figures."""
    return sum(figures.get("errors") or 0 for figures in experiment.summary.get("scorers", {}).values())


def find_unscored(experiment: Experiment) -> list[UUID]:
    """Return the IDs of the answers of an experiment of which a score failed."""
    # Most experiments have none, and their scores are then not read: they may be large.
    if not count_scorer_errors(experiment):
        return []
    rows = experiment.results.filter(error__isnull=True).order_by().values_list("pk", "scores")
    return [key for key, scores in rows.iterator(500) if any(entry.get("error") for entry in scores)]


@dataclass
class ScorerTally:
    """The scores of one scorer. What is not scorable and errors of the scorer are counted apart."""

    lower_is_better: bool = False
    name: str = ""
    values: list[float] = field(default_factory=list)
    passed: int = 0
    not_scorable: int = 0
    errors: int = 0

    def add(self, entry: JSONObject) -> None:
        self.name = entry.get("scorerName") or entry["scorerId"]
        if entry["score"] is not None:
            self.values.append(entry["score"])
            self.passed += has_passed(entry, self.lower_is_better)
        elif entry.get("error"):
            self.errors += 1
        else:
            self.not_scorable += 1

    @property
    def figures(self) -> JSONObject:
        counts = figures(self.name, self.values, self.passed, self.not_scorable, self.errors)
        return {**counts, "lowerIsBetter": self.lower_is_better}


def summarize_experiment(experiment: Experiment, earlier: Earlier | None = None) -> JSONObject:
    """Return the figures of each scorer over all results, with cost, tokens and durations.

    Those of a scorer that is better the lower it scores, such as a judge of toxicity, say so with `lowerIsBetter`.
    The cost and tokens are those of the runs and of the scorers together. `scorersCost` and `scorersTokens` are the
    part of the scorers, `earlierCost` and `earlierTokens` that of attempts that were lost, retried or stopped.
    """
    inverted = find_inverted_scorers(experiment)
    tallies: dict[str, ScorerTally] = {}
    earlier_cost, earlier_tokens = earlier or earlier_spending(experiment)
    spent = Counter({"cost": float(earlier_cost), "tokens": earlier_tokens, "scorersCost": 0.0, "scorersTokens": 0})
    durations = []
    rows = experiment.results.filter(state=ExperimentResult.State.DONE).values_list(*SUMMARY_COLUMNS)
    for entries, duration, *used in rows.iterator(500):
        for entry in entries:
            key = entry["scorerId"]
            tallies.setdefault(key, ScorerTally(key in inverted)).add(entry)
        # 0 is the duration of an item that could not run or was stopped.
        durations += [duration] if duration else []
        tokens, cost, scorers_tokens, scorers_cost = (float(value or 0) for value in used)
        spent.update({"cost": cost + scorers_cost, "tokens": int(tokens + scorers_tokens)})
        spent.update({"scorersCost": scorers_cost, "scorersTokens": int(scorers_tokens)})
    return {
        "scorers": {key: tally.figures for key, tally in tallies.items()},
        **spent,
        "earlierCost": float(earlier_cost),
        "earlierTokens": earlier_tokens,
        "medianMs": percentile(durations, 0.5),
        "p95Ms": percentile(durations, 0.95),
    }


def has_passed(entry: JSONObject, lower_is_better: bool) -> bool:
    """Return whether a score passes: by the threshold of its scorer, or else if it is the best one."""
    label = entry.get("label")
    if label in (PASSED, FAILED):
        return bool(label == PASSED)
    return bool(entry["score"] <= LOWEST if lower_is_better else entry["score"] >= PASS)


def figures(name: str, values: Sequence[float], passed: int, not_scorable: int = 0, errors: int = 0) -> JSONObject:
    """Return the figures of one scorer. `low` and `high` are a 95 % interval of the mean.

    Answers that are not scorable and errors of the scorer are counted apart, and in no figure.
    """
    counts = {"unscored": not_scorable + errors, "notScorable": not_scorable, "errors": errors}
    if not values:
        return {"name": name, "count": 0, **counts, "mean": None, "min": None, "max": None, "passRate": None}
    mean = math.fsum(values) / len(values)
    variance = math.fsum((value - mean) ** 2 for value in values) / max(len(values) - 1, 1)
    spread = half_interval(variance, len(values))
    return {
        "name": name,
        "count": len(values),
        **counts,
        "mean": mean,
        "low": mean - spread,
        "high": mean + spread,
        "min": min(values),
        "max": max(values),
        "passRate": passed / len(values),
    }


def half_interval(variance: float, count: int) -> float:
    """Return how far the 95 % interval of a mean of `count` values reaches on each side, by Student's t.

    The mean of one value has no interval, and the result is 0.
    """
    return t_quantile(count - 1) * math.sqrt(variance / count) if count > 1 else 0.0


def t_quantile(freedom: int) -> float:
    """Return the 97.5 % quantile of Student's t with degrees of freedom of at least 1."""
    if freedom <= len(T_QUANTILES):
        return T_QUANTILES[freedom - 1]
    # The first terms of formula 26.7.5 in Abramowitz and Stegun. They are exact to 4 digits here.
    return 1.95996 + 2.3722 / freedom + 2.8227 / freedom**2


def percentile(values: Iterable[float], share: float) -> float | None:
    """Return the value below which a share of the values lies, or None without values."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, math.ceil(share * len(ordered)) - 1)] if ordered else None


def _figures_of(scorers: JSONObject, keys: Iterable[str]) -> list[JSONObject]:
    return [scorers.get(key, {}) for key in keys]


def verdict_of(experiment: Experiment, summary: JSONObject) -> str:
    """Return whether the gate scorers of an experiment gave each item the best score, and its bars are met.

    Items that failed have no score, so neither holds with them. Blank without gate scorers and bars.
    """
    gates = experiment.gate_scorers or []
    if not (experiment.bars or gates):
        return ""
    scorers, has_failed = summary["scorers"], experiment.failed_count > 0
    if gates and (has_failed or not all(is_perfect(figures) for figures in _figures_of(scorers, gates))):
        return Experiment.Verdict.FAILED
    are_scored = not (has_failed or any(figures.get("errors") for figures in _figures_of(scorers, experiment.bars)))
    is_met = are_scored and all(meets_bar(scorers.get(key, {}), bar) for key, bar in experiment.bars.items())
    return Experiment.Verdict.PASSED if is_met else Experiment.Verdict.SCORED


def is_perfect(figures: JSONObject) -> bool:
    """Return whether a scorer gave every answer the best score."""
    if figures.get("count") in (None, 0) or figures.get("errors"):
        return False
    return bool(figures["max"] <= LOWEST if figures.get("lowerIsBetter") else figures["min"] >= PASS)


def meets_bar(figures: JSONObject, bar: float) -> bool:
    """Return whether the mean of a scorer is good enough. Without a score it is not."""
    if figures.get("mean") is None:
        return False
    mean = round(figures["mean"], SCORE_DIGITS)
    return bool(mean <= bar if figures.get("lowerIsBetter") else mean >= bar)


def score_text(score: float, bars: Sequence[float], digits: int = 2) -> str:
    """Return a score with these digits, and with more if it would look like a bar that it is above or below."""
    texts = [f"{score:.{count}f}" for count in range(digits, SCORE_DIGITS + 1)]
    places = [(score > bar, score < bar) for bar in bars]
    exact_enough = (text for text in texts if [(float(text) > bar, float(text) < bar) for bar in bars] == places)
    return next(exact_enough, texts[-1])
