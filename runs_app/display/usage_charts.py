"""Charts of the use of an agent per day, as data for an SVG template. Coordinates are units of the view box."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, timedelta
from typing import NamedTuple

from runs_app.display.formats import format_dollars, format_duration
from runs_app.usage.figures import UsageFigures
from runs_app.usage.report import LiveMove, UsageReport, mean_score, p95, version_label

PLOT_WIDTH, PLOT_HEIGHT = 360, 150
TOP, BOTTOM = 26, 132  # of the plot; the labels of live versions are above it, the dates below
MAX_SERIES = 5  # versions with a colour and a pattern of their own
OTHER = "other"
MIN_LABEL_DISTANCE = 20
MARKER_SIZE = 3.5


class Series(NamedTuple):
    """A version in the legend, or all others. `style` is the number of its colour and pattern, or "other"."""

    versions: Sequence[int]
    label: str
    style: str


class UsageBar(NamedTuple):
    x: float
    y: float
    width: float
    height: float
    style: str


class Marker(NamedTuple):
    """A point with the shape of its series, as an SVG path."""

    path: str
    style: str


class ChartDay(NamedTuple):
    """The bars or markers of a day, with a description that names each value."""

    description: str
    bars: Sequence[UsageBar]
    markers: Sequence[Marker]


class MoveLine(NamedTuple):
    """A line where live moved. The label is blank where it would cover another one."""

    x: float
    label: str
    description: str


@dataclass(frozen=True)
class Chart:
    """A figure per day: bars that add up the versions, or a point for each version."""

    key: str
    title: str
    total: str
    top_label: str
    days: list[ChartDay]


class Metric(NamedTuple):
    """A figure that a chart shows. Sums are stacked, and the others are points."""

    key: str
    title: str
    value: Callable[[UsageFigures], float | None]
    format: Callable[[float], str]
    is_sum: bool


def format_count(value: float) -> str:
    return f"{value:,.0f}"


def format_seconds(value: float) -> str:
    return format_duration(timedelta(seconds=value))


def p95_seconds(figures: UsageFigures) -> float | None:
    span = p95(figures)
    return span.total_seconds() if span else None


def cost_in_dollars(figures: UsageFigures) -> float | None:
    return None if figures.cost is None else float(figures.cost)


METRICS = (
    Metric("runs", "Runs", lambda figures: figures.runs, format_count, True),
    Metric("errors", "Errors", lambda figures: figures.errors, format_count, True),
    Metric("p95", "Duration, p95", p95_seconds, format_seconds, False),
    Metric("tokens", "Tokens", lambda figures: figures.tokens, format_count, True),
    Metric("cost", "Cost", cost_in_dollars, format_dollars, True),
    Metric("score", "Mean score", mean_score, lambda value: f"{value:.2f}", False),
)


def build_series(report: UsageReport) -> list[Series]:
    """Return the legend: the versions with the most runs, newest first, and then all others together."""
    ranked = sorted(report.versions, key=lambda version: (-report.totals[version].runs, -version))
    # By number: versions must not exchange their colours when one gets more runs than another.
    largest = sorted(ranked[:MAX_SERIES])
    series = [Series([version], version_label(version), str(place)) for place, version in enumerate(largest, 1)][::-1]
    if others := ranked[MAX_SERIES:]:
        series.append(Series(sorted(others), f"{len(others)} other versions", OTHER))
    return series


def build_usage_charts(report: UsageReport, series: Sequence[Series]) -> list[Chart]:
    return [build_chart(metric, report, series) for metric in METRICS]


def build_chart(metric: Metric, report: UsageReport, series: Sequence[Series]) -> Chart:
    """Return the chart of a metric, whose highest day touches the top."""
    values = [[(item, series_value(metric, report, day, item)) for item in series] for day in report.days]
    known = [[value for _, value in day if value is not None] for day in values]
    tops = [sum(day) if metric.is_sum else max(day, default=0.0) for day in known]
    # Scores have a scale of their own: low ones must not touch the top.
    top = max(max(tops), 1.0 if metric.key == "score" else 0.0)
    merged = UsageFigures()
    for figures in report.totals.values():
        merged.add(figures)
    total = metric.value(merged)
    days = [build_day(metric, report, place, day, top) for place, day in enumerate(values)]
    return Chart(
        key=metric.key,
        title=metric.title,
        total="" if total is None else metric.format(total),
        top_label=metric.format(top) if top else "",
        days=[day for day in days if day.bars or day.markers],
    )


def series_value(metric: Metric, report: UsageReport, day: date, series: Series) -> float | None:
    """Return the value of the versions of a series on a day, or None if there is none."""
    merged, has_figures = UsageFigures(), False
    for version in series.versions:
        if figures := report.usage.get((day, version)):
            merged.add(figures)
            has_figures = True
    return metric.value(merged) if has_figures else None


def build_day(
    metric: Metric, report: UsageReport, place: int, values: Sequence[tuple[Series, float | None]], top: float
) -> ChartDay:
    known = [(series, value) for series, value in values if value is not None]
    texts = [f"{series.label} {metric.format(value)}" for series, value in known]
    description = f"{format_date(report.days[place])}: {', '.join(texts)}"
    slot = PLOT_WIDTH / len(report.days)
    if metric.is_sum:
        return ChartDay(description, stack_bars(known, place * slot, slot, top), [])
    return ChartDay(
        description, [], [build_marker(series, value, (place + 0.5) * slot, top) for series, value in known]
    )


def stack_bars(values: Sequence[tuple[Series, float]], left: float, slot: float, top: float) -> list[UsageBar]:
    """Return the bars of a day, one above the other. The oldest version is at the bottom."""
    bars, base = [], float(BOTTOM)
    for series, value in reversed(values):
        if not value:
            continue
        height = max(value / top * (BOTTOM - TOP), 1.0)  # one error among many runs stays visible
        base -= height
        width = slot * 0.76
        bars.append(
            UsageBar(round(left + slot * 0.12, 1), round(base, 1), round(width, 1), round(height, 1), series.style)
        )
    return bars


def build_marker(series: Series, value: float, x: float, top: float) -> Marker:
    # The axis begins at 0. A negative mean of scores is at its bottom, and the text has the number.
    y = BOTTOM - max(value / top if top else 0, 0) * (BOTTOM - TOP)
    return Marker(marker_path(series.style, round(x, 1), round(y, 1)), series.style)


def marker_path(style: str, x: float, y: float) -> str:
    """Return the shape of a series: circle, square, triangle, diamond, inverted triangle, or a bar for the others."""
    size = MARKER_SIZE
    shapes = {
        "1": f"M{x - size} {y}a{size} {size} 0 1 0 {2 * size} 0a{size} {size} 0 1 0 {-2 * size} 0z",
        "2": f"M{x - size} {y - size}h{2 * size}v{2 * size}h{-2 * size}z",
        "3": f"M{x} {y - size}l{size} {2 * size}h{-2 * size}z",
        "4": f"M{x} {y - size - 1}l{size + 1} {size + 1}l{-size - 1} {size + 1}l{-size - 1} {-size - 1}z",
        "5": f"M{x} {y + size}l{size} {-2 * size}h{-2 * size}z",
    }
    return shapes.get(style, f"M{x - size} {y - 1}h{2 * size}v2h{-2 * size}z")


def build_moves(report: UsageReport) -> list[MoveLine]:
    """Return the lines where live moved, with labels as far as there is room."""
    lines: list[MoveLine] = []
    labelled_until = float("-inf")
    for move in report.moves:
        x = move_position(move, report.days)
        label = (
            version_label(move.version_number) if x >= labelled_until and x <= PLOT_WIDTH - MIN_LABEL_DISTANCE else ""
        )
        labelled_until = x + MIN_LABEL_DISTANCE if label else labelled_until
        description = f"{version_label(move.version_number)} live since {format_date(move.created_at.date())}"
        lines.append(MoveLine(x, label, description))
    return lines


def move_position(move: LiveMove, days: Sequence[date]) -> float:
    time = move.created_at.astimezone(UTC)
    fraction = (time.hour * 60 + time.minute) / 1440
    return round(((time.date() - days[0]).days + fraction) / len(days) * PLOT_WIDTH, 1)


def format_date(day: date) -> str:
    return f"{day.day} {day:%b}"
