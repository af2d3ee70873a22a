"""Formats of durations, prices and tokens."""

from datetime import timedelta
from decimal import Decimal

import pytest

from runs_app.display.formats import format_cost, format_duration, total_tokens


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.0352, "35 ms"),
        (0.1, "0.1 s"),
        (2.34, "2.3 s"),
        (9.96, "10 s"),
        (59.7, "1 min"),
        (185, "3 min 05 s"),
        (7200, "2 h"),
        (7500, "2 h 05 min"),
        (90_000, "1 day 1 h"),
        (3600 * 24 * 6 + 60, "6 days"),
        (-1, "0 ms"),
    ],
)
def test_durations_are_formatted(seconds, text):
    assert format_duration(timedelta(seconds=seconds)) == text


def test_a_missing_duration_is_blank():
    assert format_duration(None) == ""


@pytest.mark.parametrize(
    ("cost", "text"),
    [("0", "$0.00"), ("0.00012345", "$0.00012"), ("0.0099", "$0.0099"), ("0.014", "$0.01"), ("1234.5", "$1,234.50")],
)
def test_prices_are_formatted(cost, text):
    assert format_cost(Decimal(cost)) == text


def test_a_missing_price_is_blank():
    assert format_cost(None) == ""


def test_tokens_are_the_total_or_the_sum():
    assert total_tokens({"totalTokens": 9, "inputTokens": 1}) == 9
    assert total_tokens({"inputTokens": 3, "outputTokens": 4}) == 7
    assert total_tokens({}) == 0
