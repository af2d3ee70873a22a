"""The charts of a history."""

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from uuid import uuid4

from versions_app.history.charts import (
    CHART_WIDTH,
    MAX_POINTS,
    WEEK_COUNT,
    instructions_curve,
    live_bars,
    sample_hashes,
    weekly_bars,
)
from versions_app.history.version_summaries import VersionSummary

NOW = datetime(2026, 11, 18, 12, tzinfo=UTC)  # a Wednesday


def summary(number, days_ago=0):
    time = NOW - timedelta(days=days_ago)
    return VersionSummary(uuid4(), number, number - 1, "", "", False, time, "ann", "page")


def test_spans_fill_the_width_and_the_last_is_live():
    bars = live_bars([(1, NOW - timedelta(days=30)), (2, NOW - timedelta(days=10)), (1, NOW)], NOW)

    assert [bar.is_current for bar in bars] == [False, False, True]
    assert bars[0].x == 0
    assert bars[-1].x + bars[-1].width <= CHART_WIDTH
    assert all(before.x + before.width <= after.x for before, after in pairwise(bars))


def test_spans_have_their_dates():
    first, second = live_bars([(1, NOW - timedelta(days=30)), (7, NOW - timedelta(days=10))], NOW)

    assert first.description == "v1 from 19 October to 8 November"
    assert second.description == "v7 live since 8 November"


def test_short_spans_are_visible_and_live_has_a_label():
    moves = [
        (1, NOW - timedelta(days=300)),
        *((number, NOW - timedelta(minutes=30 - number)) for number in range(2, 24)),
    ]

    bars = live_bars(moves, NOW)

    assert len(bars) == 23
    assert all(bar.width >= 4 for bar in bars)
    assert [bar.label for bar in bars[1:]] == [""] * 21 + ["v23 live"]
    assert bars[-1].width > 60
    assert bars[-1].x + bars[-1].width <= CHART_WIDTH


def test_a_short_span_has_its_duration():
    ends = [timedelta(seconds=3), timedelta(minutes=5), timedelta(hours=2), timedelta(days=1)]
    starts = [NOW - timedelta(days=40), *(NOW - timedelta(days=40) + end for end in ends)]
    bars = live_bars([*enumerate(starts, 1), (6, NOW - timedelta(days=38))], NOW)

    assert [(bar.number, bar.label, bar.duration) for bar in bars[:3]] == [
        (1, "", "3 s"),
        (2, "", "4 min"),
        (3, "", "1 h"),
    ]
    assert bars[0].description == "v1 on 9 October for 3 s"
    assert bars[4].duration == "1 day"


def test_a_clock_that_went_back_gives_no_negative_width():
    bars = live_bars([(1, NOW), (2, NOW - timedelta(days=1)), (3, NOW + timedelta(days=1))], NOW)

    assert all(bar.width >= 4 for bar in bars)


def test_points_are_spread_over_all_versions():
    numbers = [*sample_hashes([summary(number) for number in range(1, 1001)])]

    assert (numbers[0], numbers[-1], len(numbers)) == (1, 1000, MAX_POINTS)
    assert [*sample_hashes([summary(1)])] == [1]
    assert sample_hashes([]) == {}


def test_an_agent_that_was_never_live_has_no_spans():
    assert live_bars([], NOW) == []


def test_sizes_need_two_versions():
    assert instructions_curve([(1, 0)]) is None


def test_sizes_are_ordered_from_first_to_last():
    curve = instructions_curve([(1, 1000), (2, 0), (3, 2000)])

    assert curve.line == f"M0.0 22.0 L{CHART_WIDTH / 2} 38.0 L{CHART_WIDTH}.0 6.0"
    assert (curve.first, curve.last) == ("v1, 1,000", "v3, 2,000")


def test_empty_sizes_are_a_flat_line():
    assert "38.0" in instructions_curve([(1, 0), (2, 0)]).line


def test_weeks_start_on_monday():
    bars = weekly_bars([summary(1, 0), summary(2, 2), summary(3, 3), summary(4, 9), summary(5, 10)], NOW)

    assert len(bars) == WEEK_COUNT
    assert [bar.description for bar in bars[-3:]] == ["1 2 weeks ago", "2 1 week ago", "2 this week"]


def test_older_and_future_times_are_ignored():
    bars = weekly_bars([summary(1, 4000), summary(2, -3)], NOW)

    assert sum(bar.height > 0 for bar in bars) == 1
