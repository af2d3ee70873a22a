"""The division of keys and rows into batches, each for one statement."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeVar

Item = TypeVar("Item")


def in_batches(items: Sequence[Item], size: int) -> Iterator[list[Item]]:
    """Yield the items in order, at most `size` at a time."""
    for start in range(0, len(items), size):
        yield list(items[start : start + size])
