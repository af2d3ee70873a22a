"""Histograms of durations, from which percentiles are estimated.

A bucket holds the durations from `LOG_BASE ** n` to `LOG_BASE ** (n + 1)` seconds. An estimate is the geometric middle
of its bucket, so it is at most 5 % off. Durations below a millisecond count as a millisecond.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import timedelta

# `runs_app.usage.figures` chooses the buckets by a logarithm of this base, and stored figures have them.
LOG_BASE = 1.1
SHORTEST = 0.001  # seconds

Histogram = Mapping[int, int]  # the number of runs by bucket


def estimate_percentile(histogram: Histogram, share: float) -> timedelta | None:
    """Return the duration that this share of the runs (0 to 1) did not exceed, or None without runs."""
    remaining = math.ceil(sum(histogram.values()) * share)
    for bucket in sorted(histogram):
        remaining -= histogram[bucket]
        if remaining <= 0:
            return timedelta(seconds=LOG_BASE ** (bucket + 0.5))
    return None
