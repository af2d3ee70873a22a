"""Plots of scores by version: a point with its interval for each experiment."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from evals_app.models import Experiment

WIDTH, HEIGHT, MARGIN = 480, 160, 24


class PlotPoint(NamedTuple):
    """The mean of a scorer in an experiment, with its position in pixels."""

    experiment: Experiment
    mean: float
    low: float
    high: float
    x: float
    y: float
    y_low: float
    y_high: float


class PlotLine(NamedTuple):
    """A horizontal line at a score, with its position in pixels."""

    value: float
    y: float


class ScorePlot(NamedTuple):
    """The points of one scorer over one dataset, the oldest version first."""

    scorer: str
    name: str
    dataset: Any
    points: list[PlotPoint]
    lines: list[PlotLine]
    width: int = WIDTH
    height: int = HEIGHT


def build_plots(experiments: Sequence[Experiment]) -> list[ScorePlot]:
    """Return a plot for each scorer and dataset of these experiments."""
    groups: dict[tuple[str, str], list[tuple[Experiment, dict[str, Any]]]] = {}
    for experiment in experiments:
        for key, figures in experiment.summary.get("scorers", {}).items():
            if figures.get("mean") is not None and experiment.version_number:
                groups.setdefault((key, experiment.dataset_id), []).append((experiment, figures))
    return [build_plot(key, rows) for (key, _), rows in sorted(groups.items())]


def build_plot(key: str, rows: list[tuple[Experiment, dict[str, Any]]]) -> ScorePlot:
    rows = sorted(rows, key=lambda row: (row[0].version_number or 0, row[0].created_at))
    bounds = [value for _, figures in rows for value in (figures["low"], figures["high"])]
    lowest, highest = min(0.0, *bounds), max(1.0, *bounds)

    def height_of(value: float) -> float:
        share: float = (value - lowest) / (highest - lowest)
        return round(HEIGHT - MARGIN - share * (HEIGHT - 2 * MARGIN), 1)

    step = (WIDTH - 2 * MARGIN) / max(len(rows), 1)
    points = []
    for number, (experiment, figures) in enumerate(rows):
        values = (figures["mean"], figures["low"], figures["high"])
        x = round(MARGIN + step * (number + 0.5), 1)
        points.append(PlotPoint(experiment, *values, x, *(height_of(value) for value in values)))
    lines = [PlotLine(value, height_of(value)) for value in (lowest, (lowest + highest) / 2, highest)]
    return ScorePlot(key, rows[0][1].get("name") or key, rows[0][0].dataset, points, lines)
