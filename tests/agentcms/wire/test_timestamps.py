from datetime import UTC, datetime, timedelta, timezone

import pytest

from agentcms.wire.timestamps import format_timestamp, parse_timestamp


def test_a_timestamp_is_utc_with_milliseconds():
    timestamp = datetime(2026, 1, 31, 11, 30, 0, 123999, tzinfo=timezone(timedelta(hours=2)))

    assert format_timestamp(timestamp) == "2026-01-31T09:30:00.123Z"


def test_a_naive_datetime_is_refused():
    with pytest.raises(ValueError):
        format_timestamp(datetime(2026, 1, 31))  # noqa: DTZ001


@pytest.mark.parametrize("text", ["2026-01-31T09:30:00.000Z", "2026-01-31T09:30:00Z", "2026-01-31T11:30:00+02:00"])
def test_a_timestamp_is_parsed_with_any_offset(text):
    assert parse_timestamp(text) == datetime(2026, 1, 31, 9, 30, tzinfo=UTC)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "now",
        "2026-01-31",
        "2026-01-31T09:30:00",
        "2026-13-31T09:30:00Z",
        "2026-01-31T09:30:00 00:00",
        "0001-01-01T00:00:00+14:00",
        "9999-12-31T23:59:59-14:00",
        "٢٠٢٦-01-31T09:30:00Z",
        "2026-W05-6T09:30:00Z",
        "2026-01-31T09:30:00Z\n",
    ],
)
def test_other_texts_are_refused(text):
    with pytest.raises(ValueError, match="Write a time such as"):
        parse_timestamp(text)
