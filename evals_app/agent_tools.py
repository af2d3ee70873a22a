"""Scorers that compare an answer with the ground truth of its item."""

from __future__ import annotations

from typing import Any

from agents_app.registry import scorer


def plain_text(value: Any) -> str:
    return " ".join(str(value).split()).casefold()


@scorer("exact", title="Equals the ground truth")
def exact(answer: Any, ground_truth: Any = None) -> float:
    """Return 1 if an answer equals the ground truth, but for case and white space, else 0."""
    return float(ground_truth is not None and plain_text(answer) == plain_text(ground_truth))


@scorer("includes-ground-truth", title="Includes the ground truth")
def includes_ground_truth(answer: Any, ground_truth: Any = None) -> float:
    """Return 1 if an answer contains the ground truth, else 0."""
    return float(ground_truth is not None and plain_text(ground_truth) in plain_text(answer))
