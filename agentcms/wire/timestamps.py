"""Format and parse timestamps."""

from __future__ import annotations

import re
from datetime import UTC, datetime


def format_timestamp(moment: datetime) -> str:
    """A time as the wire has it: ISO 8601 in UTC, cut to milliseconds, with a Z. A naive time is a ValueError."""
    if moment.tzinfo is not UTC:  # what a database gives is
        if moment.tzinfo is None:
            raise ValueError("A time without a zone cannot go on the wire.")
        moment = moment.astimezone(UTC)
    return moment.isoformat(timespec="milliseconds")[:-6] + "Z"


_TIMESTAMP = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,6})?(Z|[+-][0-9]{2}:[0-9]{2})"
)


def parse_timestamp(text: str) -> datetime:
    """A wire time as an aware datetime in UTC; any offset is understood, none is a ValueError."""
    try:
        if _TIMESTAMP.fullmatch(text):
            return datetime.fromisoformat(text).astimezone(UTC)
    except (ValueError, OverflowError):
        pass
    raise ValueError("Write a time such as 2026-01-31T09:30:00.000Z.")
