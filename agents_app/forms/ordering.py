"""The order of rows in a form without scripts, where each row has an input with its position."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

Item = TypeVar("Item")


def sort_by_position(items: Sequence[Item], positions: Sequence[str | None]) -> list[Item]:
    """Return items by their submitted positions, which are numbers from 1. Others stay where they are.

    An item that was given the position of another one comes before it if it moved up, and after it if it moved down.
    """
    keys = [position_key(index, text) for index, text in enumerate(positions, start=1)]
    return [item for _, item in sorted(zip(keys, items, strict=True), key=lambda pair: pair[0])]


def position_key(index: int, text: str | None) -> float:
    """Return the place of an item that was at `index`."""
    text = (text or "").strip()
    # Six digits are enough. Python refuses to convert thousands of them.
    if not text.isascii() or not text.isdecimal() or len(text) > 6 or int(text) == index:
        return index
    return int(text) + (0.5 if int(text) > index else -0.5)
