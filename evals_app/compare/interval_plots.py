"""Plots of differences with their intervals, as positions of an SVG. All plots of a page have one scale."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from agentcms.wire.json_types import JSONObject

PLOT_WIDTH, PLOT_HEIGHT, PLOT_MARGIN = 200, 24, 6
SMALLEST_LIMIT = 0.05  # or tiny differences would fill the plot


class IntervalPlot(NamedTuple):
    """The positions of no difference, of a difference and of the ends of its interval. None: there is none."""

    zero: float
    point: float | None
    low: float | None
    high: float | None
    width: int = PLOT_WIDTH
    height: int = PLOT_HEIGHT
    middle: int = PLOT_HEIGHT // 2


def build_interval_plots(entries: Sequence[JSONObject]) -> list[IntervalPlot]:
    """Return a plot for the statistics of each scorer."""
    bounds = [entry[name] for entry in entries for name in ("difference", "low", "high") if entry[name] is not None]
    limit = max([SMALLEST_LIMIT, *map(abs, bounds)])

    def position(value: float | None) -> float | None:
        share = None if value is None else (value + limit) / (2 * limit)
        return None if share is None else round(PLOT_MARGIN + share * (PLOT_WIDTH - 2 * PLOT_MARGIN), 1)

    zero = position(0.0) or 0.0
    return [
        IntervalPlot(zero, position(entry["difference"]), position(entry["low"]), position(entry["high"]))
        for entry in entries
    ]
