"""The bars of an experiment in CI, and the exit codes."""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum

from agentcms.plural import pluralize
from agentcms.wire.json_types import JSONMapping
from evals_app.compare.jobs import compute_now
from evals_app.experiments.figures import SCORE_DIGITS, meets_bar, score_text
from evals_app.models import Experiment


class ExitCode(IntEnum):
    """The exit codes of the command."""

    PASSED = 0
    BAR_MISSED = 1
    WRONG_USE = 2
    STOPPED = 3
    ITEMS_FAILED = 4


def missed_bars(experiment: Experiment, bars: Mapping[str, float]) -> list[str]:
    """Return a sentence for each scorer whose mean is not as good as its bar."""
    scorers = experiment.summary.get("scorers", {})
    sentences = []
    for key, bar in bars.items():
        figures = scorers.get(key) or {}
        mean = figures.get("mean")
        if errors := figures.get("errors"):
            sentences.append(f"'{key}' failed for {pluralize(errors, 'answer')}, so its mean is not that of all.")
        if not meets_bar(figures, bar):
            mean_text = "has no score" if mean is None else f"scored {score_text(mean, [bar], 3)}"
            sentences.append(f"'{key}' {mean_text}. The bar is {describe_bar(figures, bar)}.")
    return sentences


def describe_bar(figures: JSONMapping, bar: float) -> str:
    """Return a bar in words: `0.8`, or `at most 0.2` for a scorer that is better the lower it scores."""
    return f"at most {bar:g}" if figures.get("lowerIsBetter") else f"{bar:g}"


def worse_scorers(experiment: Experiment, baseline: Experiment, margin: float) -> list[str]:
    """Return a sentence for each scorer that is worse than in a baseline by more than a margin."""
    scorers = (compute_now(baseline, experiment).statistics or {}).get("scorers", {})
    if not scorers:
        return ["No item has a score in both experiments, so nothing can be compared with the baseline."]
    sentences = []
    for key, entry in scorers.items():
        lowest = lowest_gain(entry)
        if lowest is None:
            sentences.append(f"'{key}' cannot be compared with the baseline: no item has a score in both.")
        elif lowest < -margin:
            loss = score_text(-lowest, [margin], 3)
            sentences.append(f"'{key}' may be worse by {loss} than the baseline. The margin is {margin:g}.")
    return sentences


def lowest_gain(entry: JSONMapping) -> float | None:
    """Return how much better a scorer is at least, by its statistics. Less than 0 is worse, None is not known."""
    # Few pairs have no interval, so that the difference itself counts.
    if entry.get("lowerIsBetter"):
        highest = entry["high"] if entry["high"] is not None else entry["difference"]
        return None if highest is None else round(-float(highest), SCORE_DIGITS)
    lowest = entry["low"] if entry["low"] is not None else entry["difference"]
    return None if lowest is None else round(float(lowest), SCORE_DIGITS)


def exit_code(experiment: Experiment, missed: list[str]) -> ExitCode:
    """Return the exit code for an experiment that has ended."""
    if experiment.status != Experiment.Status.COMPLETED:
        return ExitCode.STOPPED if experiment.status == Experiment.Status.CANCELLED else ExitCode.ITEMS_FAILED
    if missed:
        return ExitCode.BAR_MISSED
    return ExitCode.ITEMS_FAILED if experiment.failed_count else ExitCode.PASSED
