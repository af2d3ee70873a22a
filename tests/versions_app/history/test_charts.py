"""The charts of a history."""

from datetime import UTC, datetime, timedelta
from itertools import pairwise

from versions_app.history.charts import CHART_WIDTH, WEEK_COUNT, instructions_curve, live_bars, weekly_bars
from versions_app.history.timeline import VersionSummary

NOW = datetime(2026, 11, 18, 12, tzinfo=UTC)  # a Wednesday


def summary(number, days_ago=0, size=0):
    return VersionSummary(number, "", NOW - timedelta(days=days_ago), "ann", size)


def test_spans_fill_the_width_and_the_last_is_live():
    bars = live_bars([(1, NOW - timedelta(days=30)), (2, NOW - timedelta(days=10)), (1, NOW)], NOW)

    assert [bar.is_current for bar in bars] == [False, False, True]
    assert bars[0].x == 0
    assert bars[-1].x + bars[-1].width <= CHART_WIDTH
    assert all(before.x + before.width <= after.x for before, after in pairwise(bars))


def test_spans_have_their_dates():
    first, second = live_bars([(1, NOW - timedelta(days=30)), (7, NOW - timedelta(days=10))], NOW)

    assert first.description == "v1 from 19 October to 8 November"
    assert second.description == "v7 since 8 November"


def test_a_short_span_is_visible_without_a_label():
    bars = live_bars([(1, NOW - timedelta(days=300)), (2, NOW - timedelta(seconds=2))], NOW)

    assert bars[1].width >= 2
    assert bars[1].label == ""


def test_an_agent_that_was_never_live_has_no_spans():
    assert live_bars([], NOW) == []


def test_sizes_need_two_versions():
    assert instructions_curve([summary(1)]) is None


def test_sizes_are_ordered_from_first_to_last():
    curve = instructions_curve([summary(1, size=1000), summary(2, size=0), summary(3, size=2000)])

    assert curve.line == f"M0.0 22.0 L{CHART_WIDTH / 2} 38.0 L{CHART_WIDTH}.0 6.0"
    assert (curve.first, curve.last) == ("v1, 1,000", "v3, 2,000")


def test_empty_sizes_are_a_flat_line():
    assert "38.0" in instructions_curve([summary(1), summary(2)]).line


def test_weeks_start_on_monday():
    bars = weekly_bars([summary(1, 0), summary(2, 2), summary(3, 3), summary(4, 9), summary(5, 10)], NOW)

    assert len(bars) == WEEK_COUNT
    assert [bar.description for bar in bars[-3:]] == ["1 2 weeks ago", "2 1 week ago", "2 this week"]


def test_older_and_future_times_are_ignored():
    bars = weekly_bars([summary(1, 4000), summary(2, -3)], NOW)

    assert sum(bar.height > 0 for bar in bars) == 1
