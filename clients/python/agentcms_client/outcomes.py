"""Outcomes of experiments: their results, and whether they pass."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from agentcms_client.json_types import JSONMapping, JSONObject, JSONValue

# More digits come from the arithmetic: the mean of 0.7, 0.8 and 0.9 is a little less than 0.8.
SCORE_DIGITS = 12


class BarMissed(AssertionError):
    """A scorer is below its bar, or worse than in the baseline. The message names the worst items."""

    def __init__(self, message: str, outcome: Outcome) -> None:
        super().__init__(message)
        self.outcome = outcome


class ExperimentFailed(Exception):
    """The experiment was cancelled, its budget is spent, it could not run, or too many of its items failed."""

    def __init__(self, message: str, outcome: Outcome | None = None, status: str = "") -> None:
        super().__init__(message)
        self.outcome = outcome
        self.status = status or (outcome.status if outcome is not None else "")  # that of the baseline if it failed


class ItemsFailed(ExperimentFailed):
    """More items failed to run than allowed. The message names some of them."""


@dataclass
class Outcome:
    """An experiment that has ended, with its results as the API returns them."""

    experiment: JSONObject
    results: list[JSONObject] = field(default_factory=list)
    # A sentence for each bar that was missed, and for each scorer that is worse than in the baseline.
    shortfalls: list[str] = field(default_factory=list)

    @property
    def title(self) -> str:
        """The name, or else the target with its version."""
        number = self.experiment["agentVersionNumber"]
        target = f"{self.experiment['targetId']}{f' v{number}' if number else ''}"
        return str(self.experiment.get("name") or target)

    @property
    def status(self) -> str:
        """One of completed, cancelled and failed."""
        is_cancelled = (self.experiment.get("metadata") or {}).get("cancelled")
        return "cancelled" if is_cancelled else str(self.experiment["status"])

    @property
    def stop_reason(self) -> str:
        """Why the experiment did not run to its end, or a blank text."""
        if self.status == "completed":
            return ""
        return self.experiment.get("stopReason") or "The experiment did not run to its end."

    @property
    def failed(self) -> list[JSONObject]:
        """The results of items that failed to run."""
        return [result for result in self.results if result["error"]]

    def scores(self, scorer: str) -> list[float]:
        """Return the scores of a scorer, without answers that it could not score."""
        return [score for result in self.results if (score := score_of(result, scorer)) is not None]

    def error_count(self, scorer: str) -> int:
        """Return the number of answers for which a scorer failed."""
        entries = (entry for result in self.results for entry in result["scores"] if entry["scorerId"] == scorer)
        return sum(entry.get("error") is not None for entry in entries)

    def mean(self, scorer: str) -> float:
        """Return the mean of a scorer. Raise LookupError if it has scored no answer."""
        scores = self.scores(scorer)
        if not scores:
            raise LookupError(f"'{scorer}' has scored no answer.")
        return mean_of(scores)

    def worst(self, count: int, scorer: str | None = None) -> list[str]:
        """Return the worst items in words: those that failed, then those with the worst score.

        That is the lowest one, and of a scorer that is better the lower it scores the highest one. Among all scorers,
        such a score counts as what it lacks to 1.
        """
        ordered = sorted(self.results, key=lambda result: (not result["error"], self.worst_score(result, scorer)))
        return [describe_result(result, scorer) for result in ordered[:count]]

    def worst_score(self, result: JSONMapping, scorer: str | None) -> float:
        """Return the worst score of a result, of one scorer if it is given. The lower, the worse."""
        entries = [entry for entry in result["scores"] if scorer in (None, entry["scorerId"])]
        scores = [(entry["scorerId"], entry["score"]) for entry in entries if entry["score"] is not None]
        return min((1 - score if self.is_inverted(key) else score for key, score in scores), default=float("inf"))

    def is_inverted(self, scorer: str) -> bool:
        """Return whether a scorer is better the lower it scores, such as a judge of toxicity."""
        scorers = (self.experiment.get("summary") or {}).get("scorers") or {}
        return bool(scorers.get(scorer, {}).get("lowerIsBetter"))

    def missed(self, bars: Mapping[str, float]) -> list[str]:
        """Return a sentence for each scorer whose mean is not as good as its bar."""
        sentences = []
        for scorer, bar in bars.items():
            scores, errors = self.scores(scorer), self.error_count(scorer)
            if errors:
                answers = "1 answer" if errors == 1 else f"{errors:,} answers"
                sentences.append(f"'{scorer}' failed for {answers}, so its mean is not that of all.")
            is_inverted, mean = self.is_inverted(scorer), mean_of(scores) if scores else None
            if mean is None or (mean > bar if is_inverted else mean < bar):
                mean_text = "has no score" if mean is None else f"scored {score_text(mean, bar)}"
                sentences.append(f"'{scorer}' {mean_text}. The bar is {'at most ' if is_inverted else ''}{bar:g}.")
        return sentences

    def of_item(self, item_id: str) -> Outcome:
        """Return the same experiment with the results of one item."""
        return replace(self, results=[result for result in self.results if result["itemId"] == item_id])

    def check(self, max_failed: int | None = 0) -> Outcome:
        """Return the outcome. Raise ExperimentFailed if it did not run to its end, BarMissed and ItemsFailed."""
        if self.stop_reason:
            raise ExperimentFailed(self.stop_reason, self)
        if self.shortfalls:
            raise BarMissed("\n".join([*self.shortfalls, "The worst items:", *self.worst(5)]), self)
        return self.check_items(max_failed)

    def check_items(self, max_failed: int | None = 0) -> Outcome:
        """Return the outcome. Raise ItemsFailed if more items failed than allowed; None allows any number."""
        count = len(self.failed)
        if max_failed is not None and count > max_failed:
            summary = f"{count} {'item' if count == 1 else 'items'} failed to run."
            raise ItemsFailed("\n".join([summary, *self.worst(min(count, 5))]), self)
        return self


def mean_of(scores: Sequence[float]) -> float:
    return round(math.fsum(scores) / len(scores), SCORE_DIGITS)


def score_text(score: float, bar: float) -> str:
    """Return a score with three digits, or with more if it would look like the bar."""
    texts = [f"{score:.{count}f}" for count in range(3, SCORE_DIGITS + 1)]
    place = (score > bar, score < bar)
    return next((text for text in texts if (float(text) > bar, float(text) < bar) == place), texts[-1])


def score_of(result: JSONMapping, scorer: str) -> float | None:
    """Return the score of a scorer in a result, or None without one."""
    return next((entry["score"] for entry in result["scores"] if entry["scorerId"] == scorer), None)


def describe_result(result: JSONMapping, scorer: str | None) -> str:
    """Return a result in one line: its scores or its error, the input and the answer."""
    if result["error"]:
        return f"failed: {result['error']['message']} | {shorten(result['input'])}"
    entries = [entry for entry in result["scores"] if scorer in (None, entry["scorerId"])]
    scores = ", ".join(f"{entry['scorerId']} {entry['score']}" for entry in entries)
    return f"{scores} | {shorten(result['input'])} -> {shorten(result['output'])}"


def shorten(value: JSONValue) -> str:
    text = " ".join(str(value).split())
    return text if len(text) <= 80 else f"{text[:79]}…"


def worse_scorers(statistics: JSONMapping, margin: float) -> list[str]:
    """Return a sentence for each scorer of a comparison that may be worse than the baseline by more than a margin.

    A scorer without a pair of scores cannot be compared, which is a shortfall too.
    """
    if not statistics["scorers"]:
        return ["No item has a score in both experiments, so nothing can be compared with the baseline."]
    sentences = []
    for key, entry in statistics["scorers"].items():
        lowest = lowest_gain(entry)
        if lowest is None:
            sentences.append(f"'{key}' scored no item in both experiments, so it cannot be compared.")
        elif lowest < -margin:
            loss = score_text(-lowest, margin)
            sentences.append(f"'{key}' may be worse by {loss} than the baseline. The margin is {margin:g}.")
    return sentences


def lowest_gain(entry: JSONMapping) -> float | None:
    """Return how much better a scorer is at least, by its statistics. Less than 0 is worse, None is not known."""
    # As the server's own command decides, in `evals_app/reports/bars.py`: this package must not depend on the server.
    if entry.get("lowerIsBetter"):
        highest = entry["high"] if entry["high"] is not None else entry["difference"]
        return None if highest is None else round(-float(highest), SCORE_DIGITS)
    lowest = entry["low"] if entry["low"] is not None else entry["difference"]
    return None if lowest is None else round(float(lowest), SCORE_DIGITS)
