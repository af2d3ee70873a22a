"""The scores of an item that was answered several times."""

from __future__ import annotations

from collections.abc import Iterable
from statistics import fmean
from typing import Any


def mean_scores(attempts: Iterable[list[dict[str, Any]]]) -> list[dict[str, Any]]:
    """Return the scores of an item with the mean over its answers. It is None if no answer could be scored."""
    values: dict[str, list[float]] = {}
    scorers: dict[str, dict[str, Any]] = {}
    for scores in attempts:
        for entry in scores:
            scorers.setdefault(entry["scorerId"], entry)
            if entry["score"] is not None:
                values.setdefault(entry["scorerId"], []).append(entry["score"])
    return [{**entry, "score": fmean(values[key]) if key in values else None} for key, entry in scorers.items()]
