"""The scores of an item that was answered several times."""

from __future__ import annotations

from collections.abc import Iterable
from statistics import fmean

from agentcms.wire.json_types import JSONObject


def mean_scores(attempts: Iterable[list[JSONObject]]) -> list[JSONObject]:
    """Return the scores of an item with the mean over its answers. It is None if no answer could be scored."""
    values: dict[str, list[float]] = {}
    scorers: dict[str, JSONObject] = {}
    for scores in attempts:
        for entry in scores:
            scorers.setdefault(entry["scorerId"], entry)
            if entry["score"] is not None:
                values.setdefault(entry["scorerId"], []).append(entry["score"])
    return [{**entry, "score": fmean(values[key]) if key in values else None} for key, entry in scorers.items()]
