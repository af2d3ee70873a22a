"""Timestamps as the API writes and reads them."""

from __future__ import annotations

import re
from datetime import UTC, datetime


def format_timestamp(timestamp: datetime) -> str:
    """Return a time in ISO 8601, in UTC, with milliseconds and a Z. Raise ValueError for a naive time."""
    if timestamp.tzinfo is not UTC:  # times from the database are in UTC already
        if timestamp.tzinfo is None:
            raise ValueError("A timestamp needs a time zone.")
        timestamp = timestamp.astimezone(UTC)
    # The last six characters are +00:00, in place of which clients expect a Z, as JavaScript writes it.
    return timestamp.isoformat(timespec="milliseconds")[:-6] + "Z"


def end_of_millisecond(time: datetime) -> datetime:
    """Return the last moment that is written as a time. Ranges that include their end reach up to it."""
    return time.replace(microsecond=time.microsecond // 1000 * 1000 + 999)


# `datetime.fromisoformat` also reads other forms, such as 2026-W05-6 and times without an offset.
_TIMESTAMP = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,6})?(Z|[+-][0-9]{2}:[0-9]{2})"
)


def parse_timestamp(text: str) -> datetime:
    """Return an ISO 8601 time with any offset as a datetime in UTC. Raise ValueError for anything else."""
    try:
        if _TIMESTAMP.fullmatch(text):
            return datetime.fromisoformat(text).astimezone(UTC)
    except (ValueError, OverflowError):
        pass
    raise ValueError("Write a time such as 2026-01-31T09:30:00.000Z.")
