"""A reference for the current speed of the machine.

Other users of the same hardware can change its speed by half from one minute to the next.
"""

from __future__ import annotations

import time

ITERATIONS = 100_000
ATTEMPTS = 5


def reference_cpu_ms() -> float:
    """Return the CPU milliseconds of a fixed piece of Python, the least of five attempts."""
    return min(_attempt() for _ in range(ATTEMPTS))


def _attempt() -> float:
    started = time.process_time()
    texts: dict[int, str] = {}
    for number in range(ITERATIONS):
        texts[number % 100] = str([number, number + 1])
    return (time.process_time() - started) * 1000
