"""Small pictures of a history, as numbers that a template draws: 1 unit is 1 pixel of a box 280 wide."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from django.utils import timezone

from agents_app.models import Agent
from versions_app.history.timeline import VersionSummary

CHART_WIDTH = 280
MAX_SPANS = 12
MAX_POINTS = 120
WEEK_COUNT = 12
LETTER_WIDTH = 7  # the width of one in a label


class Bar(NamedTuple):
    """A rectangle with a word on it where there is room, and a sentence for who does not see it."""

    x: float
    y: float
    width: float
    height: float
    strong: bool
    label: str
    said: str


class Curve(NamedTuple):
    """A line and the area below it as SVG paths, with what its ends are called."""

    line: str
    area: str
    first: str
    last: str


def build_charts(agent: Agent, kept: Sequence[VersionSummary]) -> dict[str, Any]:
    """Everything that the rail of a history draws."""
    now = timezone.now()
    moves = [*agent.activations.values_list("to_version_number", "created_at")[:MAX_SPANS]][::-1]
    made = weekly_bars(kept, now)
    return {
        "width": CHART_WIDTH,
        "spans": live_bars(moves, now),
        "since": format_day(moves[0][1], now) if moves else "",
        "sizes": instructions_curve(kept),
        "weeks": made,
        "most": max(int(bar.label) for bar in made),
        "weeks_count": WEEK_COUNT,
    }


def live_bars(moves: Sequence[tuple[int, datetime]], now: datetime) -> list[Bar]:
    """What was live when, oldest first; each at least wide enough to be seen."""
    if not moves:
        return []
    ends = [*(at for _, at in moves[1:]), None]
    total = max((now - moves[0][1]).total_seconds(), 1)
    widths = [
        max(((end or now) - at).total_seconds() / total * CHART_WIDTH, 4.0)
        for (_, at), end in zip(moves, ends, strict=True)
    ]
    scale = CHART_WIDTH / sum(widths)
    bars, x = [], 0.0
    for (number, at), end, share in zip(moves, ends, widths, strict=True):
        width = share * scale
        bars.append(live_bar(number, round(x, 1), width, at, end, now))
        x += width
    return bars


def live_bar(number: int, x: float, width: float, at: datetime, end: datetime | None, now: datetime) -> Bar:
    """The time for which a version was live, or has been since where there is no end."""
    said = (
        f"v{number} from {format_day(at, now)} to {format_day(end, now)}"
        if end
        else f"v{number} since {format_day(at, now)}"
    )
    labels = (f"v{number} live", f"v{number}") if end is None else (f"v{number}",)
    label = next((label for label in labels if width >= 14 + LETTER_WIDTH * len(label)), "")
    return Bar(x, 4, round(max(width - 2, 2), 1), 22, end is None, label, said)


def instructions_curve(kept: Sequence[VersionSummary]) -> Curve | None:
    """The size of the instructions over the versions that are kept; nothing where there is only one."""
    points = kept[-MAX_POINTS:]
    if len(points) < 2:
        return None
    most = max(max(point.size for point in points), 1)
    step = CHART_WIDTH / (len(points) - 1)
    places = [f"{index * step:.1f} {38 - point.size / most * 32:.1f}" for index, point in enumerate(points)]
    line = f"M{' L'.join(places)}"
    first, last = points[0], points[-1]
    return Curve(line, f"{line} V40 H0 z", f"v{first.number}, {first.size:,}", f"v{last.number}, {last.size:,}")


def weekly_bars(kept: Sequence[VersionSummary], now: datetime) -> list[Bar]:
    """How many versions were made in each of the last weeks; weeks begin on Monday."""
    monday = (now - timedelta(days=now.weekday())).date()
    counts = Counter((monday - sketch.created_at.date() + timedelta(days=6)).days // 7 for sketch in kept)
    most = max([counts[ago] for ago in range(WEEK_COUNT)] + [1])
    bars = []
    for index, ago in enumerate(range(WEEK_COUNT - 1, -1, -1)):
        made = counts[ago] if ago else sum(count for week, count in counts.items() if week <= 0)
        height = round(made / most * 34, 1)
        when = "this week" if ago == 0 else f"{ago} week{'s' if ago > 1 else ''} ago"
        bars.append(
            Bar(
                round((index + 0.12) * CHART_WIDTH / WEEK_COUNT, 1),
                round(40 - height, 1),
                round(0.76 * CHART_WIDTH / WEEK_COUNT, 1),
                height,
                ago == 0,
                str(made),
                f"{made} {when}",
            )
        )
    return bars


def format_day(moment: datetime, now: datetime) -> str:
    year = f" {moment.year}" if moment.year != now.year else ""
    return f"{moment.day} {moment:%B}{year}"
