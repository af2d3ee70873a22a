"""Figures of experiments as texts of pages."""

from __future__ import annotations

from datetime import timedelta

from evals_app.models import ExperimentResult
from runs_app.display.formats import format_duration

MINUS = "\N{MINUS SIGN}"


def duration_text(milliseconds: float | None) -> str:
    """Return a duration such as `1.6 s`, or a blank text without one."""
    return "" if milliseconds is None else format_duration(timedelta(milliseconds=milliseconds))


def result_duration_text(result: ExperimentResult) -> str:
    """Return how long a result took. A program outside may submit it without times, which are equal then."""
    return "duration unknown" if result.is_submitted and not result.duration_ms else duration_text(result.duration_ms)


def score_difference_text(difference: float | None) -> str:
    """Return the difference of two scores with its sign, or a blank text without one."""
    if difference is None:
        return ""
    rounded = round(difference, 2)
    return f"{'+' if rounded > 0 else MINUS if rounded < 0 else ''}{abs(rounded):.2f}"


def interval_text(low: float | None, high: float | None) -> str:
    """Return an interval of differences, or a blank text without one."""
    return "" if low is None or high is None else f"{score_difference_text(low)} to {score_difference_text(high)}"
