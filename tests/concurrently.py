"""Concurrent calls in threads, each with its own database connection."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any

from django.db import connections


def run_concurrently(acts: Sequence[Callable[[], Any]]) -> list[Any]:
    """Start all calls together. Return the result or exception of each, in order."""
    barrier = Barrier(len(acts))

    def run(act: Callable[[], Any]) -> Any:
        barrier.wait()
        try:
            return act()
        except Exception as error:
            return error
        finally:
            connections.close_all()

    with ThreadPoolExecutor(len(acts)) as pool:
        return list(pool.map(run, acts))
