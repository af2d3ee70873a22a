"""Plots of scores by version: a point with its interval for each experiment, and one for the answers in use.

Results that a program outside submitted are a series of their own.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import NamedTuple

from agentcms.wire.json_types import JSONObject
from evals_app.experiments.figures import find_known_cost
from evals_app.models import Dataset, Experiment
from evals_app.quality.answers_in_use import OnlineScores
from runs_app.display.formats import format_duration

WIDTH, HEIGHT, MARGIN = 480, 160, 24
STYLES = 4  # of lines; the newest version of a scorer has the first


class PlotValue(NamedTuple):
    """The mean of a scorer for a version: in an experiment, or without one over the answers in use."""

    version_number: int
    mean: float
    low: float
    high: float
    answer_count: int
    experiment: Experiment | None = None
    scorer_version: int | None = None  # None for a scorer in code

    @property
    def is_submitted(self) -> bool:
        return self.experiment is not None and self.experiment.has_submitted_results

    @property
    def cost(self) -> float | None:
        """The cost of the runs that gave the answers of the experiment, without that of its scorers. None: unknown."""
        summary = self.experiment.summary if self.experiment else {}
        if self.experiment is None or summary.get("cost") is None:
            return None
        cost = float(summary["cost"] - summary.get("scorersCost", 0) - summary.get("earlierCost", 0))
        known = find_known_cost(self.experiment, cost)
        return None if known is None else float(known)

    @property
    def p95_text(self) -> str:
        """The 95th percentile of the durations in the experiment, or a blank text."""
        p95 = self.experiment.summary.get("p95Ms") if self.experiment else None
        return format_duration(timedelta(milliseconds=p95)) if p95 is not None else ""


class PlotPoint(NamedTuple):
    """A value with its position in pixels."""

    value: PlotValue
    x: float
    y: float
    y_low: float
    y_high: float


class PlotLine(NamedTuple):
    """A horizontal line at a score, with its position in pixels."""

    value: float
    y: float


class PlotSeries(NamedTuple):
    """The points of one source and one version of the scorer, which a line connects. `style` is its number."""

    scorer_version: int | None
    is_online: bool
    is_submitted: bool
    style: int
    path: str


class ScorePlot(NamedTuple):
    """The points of one scorer over one dataset, the oldest version first. Without a dataset, only answers in use.

    A new version of the scorer is another line: its scores are not comparable with those of the one before.
    """

    scorer: str
    name: str
    dataset: Dataset | None
    points: list[PlotPoint]
    lines: list[PlotLine]
    bars: list[PlotLine]
    has_online: bool
    has_submitted: bool
    series: list[PlotSeries]
    width: int = WIDTH
    height: int = HEIGHT

    @property
    def legend(self) -> list[PlotSeries]:
        """One series of each version of the scorer, or none if there is only one version."""
        by_version = {series.scorer_version: series for series in self.series}
        return list(by_version.values()) if len(by_version) > 1 else []


def build_plots(
    experiments: Sequence[Experiment],
    online: Sequence[OnlineScores] = (),
    titles: Mapping[str, str] | None = None,
    bars: Mapping[tuple[str, str], list[float]] | None = None,
) -> list[ScorePlot]:
    """Return a plot for each scorer and dataset, with the scores of answers in use as a second series.

    `titles` names scorers that no experiment has used. `bars` are the lowest means that gates ask for, by scorer and
    dataset.
    """
    groups: dict[tuple[str, str], list[PlotValue]] = {}
    names = dict(titles or {})
    for experiment in experiments:
        for key, figures in experiment.summary.get("scorers", {}).items():
            if figures.get("mean") is not None and experiment.version_number:
                names[key] = figures.get("name") or key
                groups.setdefault((key, experiment.dataset_id), []).append(value_of(experiment, key, figures))
    in_use: dict[str, list[PlotValue]] = {}
    for row in online:
        in_use.setdefault(row.scorer, []).append(
            PlotValue(row.version_number, row.mean, row.low, row.high, row.answer_count, None, row.scorer_version)
        )
    # Answers in use belong to no dataset: they are in the plots of all datasets, or else in one of their own.
    for key in in_use.keys() - {key for key, _ in groups}:
        groups[key, ""] = []
    return [
        build_plot(key, names.get(key, key), [*values, *in_use.get(key, [])], (bars or {}).get((key, dataset_id), []))
        for (key, dataset_id), values in sorted(groups.items(), key=lambda group: group[0])
    ]


def value_of(experiment: Experiment, key: str, figures: JSONObject) -> PlotValue:
    bounds = (figures["mean"], figures["low"], figures["high"])
    scorer_version = experiment.scorer_versions.get(key)
    return PlotValue(experiment.version_number or 0, *bounds, figures.get("count") or 0, experiment, scorer_version)


def series_of(points: Sequence[PlotPoint]) -> list[PlotSeries]:
    """Return the lines of a plot: for each version of the scorer one of each source."""
    groups: dict[tuple[bool, bool, int], list[PlotPoint]] = {}
    for point in points:
        value = point.value
        place = (value.experiment is None, value.is_submitted, value.scorer_version or 0)
        groups.setdefault(place, []).append(point)
    versions = sorted({version for *_, version in groups}, reverse=True)
    styles = {version: number % STYLES for number, version in enumerate(versions)}
    return [
        PlotSeries(version or None, is_online, is_submitted, styles[version], " ".join(f"{p.x},{p.y}" for p in group))
        for (is_online, is_submitted, version), group in sorted(groups.items())
    ]


def build_plot(key: str, name: str, values: list[PlotValue], bars: list[float]) -> ScorePlot:
    values = sorted(values, key=position_of)
    lowest, highest = axis_of(values, bars)
    values = [value._replace(low=max(value.low, lowest), high=min(value.high, highest)) for value in values]

    def height_of(value: float) -> float:
        """Return the position of a score in pixels."""
        share: float = (value - lowest) / (highest - lowest)
        return round(HEIGHT - MARGIN - share * (HEIGHT - 2 * MARGIN), 1)

    step = (WIDTH - 2 * MARGIN) / len(values)
    points = [
        PlotPoint(
            value,
            round(MARGIN + step * (number + 0.5), 1),
            *(height_of(bound) for bound in (value.mean, value.low, value.high)),
        )
        for number, value in enumerate(values)
    ]
    lines = [PlotLine(value, height_of(value)) for value in (lowest, (lowest + highest) / 2, highest)]
    dataset = next((value.experiment.dataset for value in values if value.experiment), None)
    has_online = any(value.experiment is None for value in values)
    gates = [PlotLine(bar, height_of(bar)) for bar in bars]
    has_submitted = any(value.is_submitted for value in values)
    return ScorePlot(key, name, dataset, points, lines, gates, has_online, has_submitted, series_of(points))


def axis_of(values: Sequence[PlotValue], bars: Sequence[float]) -> tuple[float, float]:
    """Return the ends of the axis: 0 and 1 if all means are there, else round numbers around the intervals.

    The interval of a mean of few answers may be wider than the scores can be. It then ends where the axis does.
    """
    means = [*bars, *(value.mean for value in values)]
    if min(means) >= 0 and max(means) <= 1:
        return 0.0, 1.0
    bounds = [*means, *(bound for value in values for bound in (value.low, value.high))]
    lowest, highest = min(0.0, *bounds), max(1.0, *bounds)
    step: float = 10 ** math.floor(math.log10(highest - lowest)) / 2
    return math.floor(lowest / step) * step, math.ceil(highest / step) * step


def position_of(value: PlotValue) -> tuple[int, bool, int, str]:
    """Return the key by which the points of a plot are sorted: those of one version by time."""
    created = value.experiment.created_at.isoformat() if value.experiment else ""
    return value.version_number, value.experiment is None, value.scorer_version or 0, created
