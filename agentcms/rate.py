"""Rates in settings, such as `200/s`."""

from __future__ import annotations

import re
from typing import NamedTuple

_UNITS = {"s": 1, "m": 60, "min": 60, "h": 3600}


class Rate(NamedTuple):
    """A number of calls in a number of seconds."""

    calls: int
    seconds: int

    @classmethod
    def parse(cls, text: str) -> Rate | None:
        """Return the rate of a text such as `200/s`, `5000/min` or `100/10s`, or None for `off`. Raise ValueError."""
        if text.strip().lower() == "off":
            return None
        parts = re.fullmatch(r"([1-9][0-9]{0,8})\s*/\s*(?:([1-9][0-9]{0,4})\s*)?(s|m|min|h)", text.strip())
        if parts is None:
            raise ValueError("Write a rate such as 200/s or 5000/min, or off.")
        return cls(int(parts[1]), int(parts[2] or 1) * _UNITS[parts[3]])
