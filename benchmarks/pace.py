"""How quick this machine is just now: neighbours on its hardware change that by half from minute to minute."""

from __future__ import annotations

import time

ROUNDS = 100_000


def pace() -> float:
    """CPU milliseconds of a fixed piece of Python, the least of five."""
    return min(_once() for _ in range(5))


def _once() -> float:
    began = time.process_time()
    kept: dict[int, str] = {}
    for number in range(ROUNDS):
        kept[number % 100] = str([number, number + 1])
    return (time.process_time() - began) * 1000
