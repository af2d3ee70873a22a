"""Plots of differences and scores with their intervals, as positions of an SVG. All plots of a page have one scale."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from agentcms.wire.json_types import JSONObject

PLOT_WIDTH, PLOT_HEIGHT, PLOT_MARGIN = 200, 24, 6
SMALLEST_LIMIT = 0.05  # or tiny differences would fill the plot


class IntervalPlot(NamedTuple):
    """The positions of zero, of a value and of the ends of its interval. None: there is none."""

    zero: float
    point: float | None
    low: float | None
    high: float | None
    one: float | None = None  # of the best score, usually
    width: int = PLOT_WIDTH
    height: int = PLOT_HEIGHT
    middle: int = PLOT_HEIGHT // 2


def build_interval_plots(entries: Sequence[JSONObject]) -> list[IntervalPlot]:
    """Return a plot for the statistics of each scorer."""
    bounds = [entry[name] for entry in entries for name in ("difference", "low", "high") if entry[name] is not None]
    limit = max([SMALLEST_LIMIT, *map(abs, bounds)])
    return [build_interval_plot(entry, "difference", -limit, limit) for entry in entries]


def build_score_plots(entries: Sequence[JSONObject]) -> list[IntervalPlot]:
    """Return a plot for the mean score of each scorer, on a scale from 0 to 1 or as far as the scores reach."""
    bounds = [entry[name] for entry in entries for name in ("mean", "low", "high") if entry.get(name) is not None]
    first, last = min([0.0, *bounds]), max([1.0, *bounds])
    end = build_interval_plot({"mean": 1.0}, "mean", first, last).point
    return [build_interval_plot(entry, "mean", first, last)._replace(one=end) for entry in entries]


def build_interval_plot(entry: JSONObject, name: str, first: float, last: float) -> IntervalPlot:
    """Return the plot of a value and its interval on a scale."""

    def position(value: float | None) -> float | None:
        share = None if value is None else (value - first) / (last - first)
        return None if share is None else round(PLOT_MARGIN + share * (PLOT_WIDTH - 2 * PLOT_MARGIN), 1)

    zero = position(0.0) or 0.0
    return IntervalPlot(zero, position(entry[name]), position(entry.get("low")), position(entry.get("high")))
