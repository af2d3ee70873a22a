"""Durations of what a benchmark does."""

from __future__ import annotations

import time
from collections.abc import Callable

Figures = dict[str, float]
ROUNDS = 9


def milliseconds(action: Callable[[], object]) -> float:
    started = time.perf_counter()
    action()
    return (time.perf_counter() - started) * 1000


def least_ms(action: Callable[[], object], rounds: int = ROUNDS) -> float:
    """Return the least of several durations: other programs can only add to it. One before loads what is needed."""
    action()
    return min(milliseconds(action) for _ in range(rounds))
