"""Chart data of a history for SVG templates. Coordinates are pixels of a chart 280 wide."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from django.utils import timezone

from agentcms.plural import pluralize
from agents_app.models import Agent
from versions_app.history.instruction_sizes import instruction_sizes
from versions_app.history.version_summaries import VersionSummary

CHART_WIDTH = 280
MAX_PERIODS = 24
MIN_BAR_WIDTH = 6.0  # of a period, however short
MAX_POINTS = 24  # each reads the instructions of a version
WEEK_COUNT = 12
LETTER_WIDTH = 7  # of a label
LABEL_PADDING = 14


class Bar(NamedTuple):
    """A bar with a label if it fits, and a description for screen readers. A past period also has a duration."""

    x: float
    y: float
    width: float
    height: float
    is_current: bool
    label: str
    description: str
    number: int = 0
    duration: str = ""


class Curve(NamedTuple):
    """A line and the area below it as SVG paths, with labels of both ends."""

    line: str
    area: str
    first: str
    last: str


class HistoryCharts(NamedTuple):
    """The charts of a history, as its template shows them."""

    spans: list[Bar]  # in which a version was live
    short_periods: list[Bar]  # too narrow for a label
    stored_numbers: set[int]
    since: str
    omits_periods: bool
    sizes: Curve | None
    weeks: list[Bar]
    most: int  # versions of a week
    width: int = CHART_WIDTH
    weeks_count: int = WEEK_COUNT


def build_history_charts(agent: Agent, summaries: Sequence[VersionSummary]) -> HistoryCharts:
    """Return all charts of a history."""
    now = timezone.now()
    # One more than there is room for tells whether some are left out.
    moves = [*agent.activations.values_list("to_version_number", "created_at")[: MAX_PERIODS + 1]][::-1]
    omits_periods = len(moves) > MAX_PERIODS
    moves = moves[-MAX_PERIODS:]
    weeks, spans = weekly_bars(summaries, now), live_bars(moves, now)
    return HistoryCharts(
        spans=spans,
        short_periods=[bar for bar in spans if not bar.label],
        stored_numbers={summary.number for summary in summaries},
        since=format_day(moves[0][1], now) if moves else "",
        omits_periods=omits_periods,
        sizes=instructions_curve(instruction_sizes(agent, sample_hashes(summaries))),
        weeks=weeks,
        most=max(int(bar.label) for bar in weeks),
    )


def live_bars(moves: Sequence[tuple[int, datetime]], now: datetime) -> list[Bar]:
    """Return a bar for each period in which a version was live, oldest first.

    Every bar has a visible width, and the last one, which is live, has room for its label.
    """
    if not moves:
        return []
    ends = [*(at for _, at in moves[1:]), None]
    seconds = [max(((end or now) - at).total_seconds(), 0) for (_, at), end in zip(moves, ends, strict=True)]
    live_label = f"v{moves[-1][0]} live"
    min_widths = [MIN_BAR_WIDTH] * (len(moves) - 1) + [label_width(live_label)]
    bars, x = [], 0.0
    for (number, at), end, width in zip(moves, ends, share_width(seconds, min_widths), strict=True):
        bars.append(live_bar(number, round(x, 1), width, at, end, now))
        x += width
    return bars


def share_width(seconds: Sequence[float], min_widths: Sequence[float]) -> list[float]:
    """Divide the width of the chart by duration, after each bar got its least width."""
    rest, total = CHART_WIDTH - sum(min_widths), sum(seconds) or 1
    return [least + rest * duration / total for duration, least in zip(seconds, min_widths, strict=True)]


def live_bar(number: int, x: float, width: float, at: datetime, end: datetime | None, now: datetime) -> Bar:
    """Return the bar of a period in which a version was live. No end means that it is still live."""
    start = format_day(at, now)
    description = f"v{number} live since {start}"
    if end:
        until = format_day(end, now)
        when = f"on {start} for {format_live_period(end - at)}" if until == start else f"from {start} to {until}"
        description = f"v{number} {when}"
    label = f"v{number}" if end else f"v{number} live"
    if end and width < label_width(label):
        label = ""
    duration = format_live_period(end - at) if end else ""
    return Bar(x, 4, round(max(width - 2, 2), 1), 22, end is None, label, description, number, duration)


def format_live_period(duration: timedelta) -> str:
    """Return a duration in its largest unit: "3 s", "5 min", "2 h", "12 days"."""
    seconds = max(int(duration.total_seconds()), 0)
    for unit, length in ((" days", 86_400), (" h", 3600), (" min", 60)):
        if seconds >= length:
            count = seconds // length
            return f"{count}{unit if count > 1 else unit.removesuffix('s')}"
    return f"{seconds} s" if seconds else "under 1 s"


def label_width(label: str) -> float:
    return LABEL_PADDING + LETTER_WIDTH * len(label)


def sample_hashes(summaries: Sequence[VersionSummary]) -> dict[int, str]:
    """Return number and hash of at most MAX_POINTS versions, evenly spread, with the first and the last."""
    count = min(len(summaries), MAX_POINTS)
    indexes = {round(position * (len(summaries) - 1) / max(count - 1, 1)) for position in range(count)}
    return {summaries[index].number: summaries[index].snapshot_hash for index in sorted(indexes)}


def instructions_curve(points: Sequence[tuple[int, int]]) -> Curve | None:
    """Return the length of the instructions by version, or None if there are fewer than two versions."""
    if len(points) < 2:
        return None
    max_size = max(max(size for _, size in points), 1)
    step = CHART_WIDTH / (len(points) - 1)
    coordinates = [f"{index * step:.1f} {38 - size / max_size * 32:.1f}" for index, (_, size) in enumerate(points)]
    line = f"M{' L'.join(coordinates)}"
    (first, first_size), (last, last_size) = points[0], points[-1]
    return Curve(line, f"{line} V40 H0 z", f"v{first}, {first_size:,}", f"v{last}, {last_size:,}")


def weekly_bars(summaries: Sequence[VersionSummary], now: datetime) -> list[Bar]:
    """Return a bar for each of the last weeks with its number of new versions. Weeks begin on Monday."""
    monday = (now - timedelta(days=now.weekday())).date()
    # Rounded up: the days before this Monday are one week ago.
    counts = Counter((monday - summary.created_at.date() + timedelta(days=6)).days // 7 for summary in summaries)
    max_count = max([counts[ago] for ago in range(WEEK_COUNT)] + [1])
    bars = []
    for index, ago in enumerate(range(WEEK_COUNT - 1, -1, -1)):
        # The clock of another process may be ahead, and its versions of the future belong to this week.
        count = counts[ago] if ago else sum(number for week, number in counts.items() if week <= 0)
        height = round(count / max_count * 34, 1)
        when = "this week" if ago == 0 else f"{pluralize(ago, 'week')} ago"
        bars.append(
            Bar(
                round((index + 0.12) * CHART_WIDTH / WEEK_COUNT, 1),
                round(40 - height, 1),
                round(0.76 * CHART_WIDTH / WEEK_COUNT, 1),
                height,
                ago == 0,
                str(count),
                f"{count} {when}",
            )
        )
    return bars


def format_day(time: datetime, now: datetime) -> str:
    year = f" {time.year}" if time.year != now.year else ""
    return f"{time.day} {time:%B}{year}"
