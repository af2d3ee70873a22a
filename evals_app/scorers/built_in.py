"""Built-in scorers that compare an answer with the ground truth of its item."""

from __future__ import annotations

import math

from agentcms.wire.canonical import comparable_texts
from agentcms.wire.json_types import JSONObject, JSONValue
from agents_app.registry import scorer
from evals_app.scorers.results import NO_TRUTH_MESSAGE

NO_TRUTH: JSONObject = {"score": None, "reason": NO_TRUTH_MESSAGE}


def plain_texts(answer: JSONValue, ground_truth: JSONValue) -> list[str]:
    """Return an answer and the ground truth as texts, without their case and with single blanks."""
    return [" ".join(text.split()).casefold() for text in comparable_texts(answer, ground_truth)]


@scorer(
    "exact",
    title="Equals the ground truth",
    description="1 for an answer that equals the ground truth, but for case and white space, else 0.",
)
def exact(answer: JSONValue, ground_truth: JSONValue = None) -> float | JSONObject:
    """Return 1 if an answer equals the ground truth, but for case and white space, else 0."""
    if ground_truth is None:
        return NO_TRUTH
    given, expected = plain_texts(answer, ground_truth)
    return float(given == expected)


@scorer(
    "includes-ground-truth",
    title="Includes the ground truth",
    description="1 for an answer that contains the ground truth, else 0.",
)
def includes_ground_truth(answer: JSONValue, ground_truth: JSONValue = None) -> float | JSONObject:
    """Return 1 if an answer contains the ground truth, else 0."""
    if ground_truth is None:
        return NO_TRUTH
    given, expected = plain_texts(answer, ground_truth)
    return float(expected in given)


@scorer(
    "agreement",
    title="Agrees with the ground truth",
    description="For experiments over scorers: how near a score is to that of people, from 1 (equal) to 0.",
)
def agreement(answer: JSONValue, ground_truth: JSONValue = None) -> float | JSONObject:
    """Return how near a score is to that of people, for experiments over scorers.

    The answer is a score or an object with a `score`. The ground truth is one, too, or a range such as {"min": 0.8}.
    1 is equal or inside of the range, 0 is a distance of 1 or more. Raise ValueError if there is nothing to compare.
    """
    if ground_truth is None:
        return NO_TRUTH
    given = answer.get("score") if isinstance(answer, dict) else answer
    expected = ground_truth.get("score", ground_truth) if isinstance(ground_truth, dict) else ground_truth
    limits = expected if isinstance(expected, dict) else {"min": expected, "max": expected}
    low, high = limits.get("min", -math.inf), limits.get("max", math.inf)
    if not all(isinstance(value, int | float) for value in (given, low, high)):
        raise ValueError("The answer and the ground truth need a score.")
    return max(0.0, 1.0 - float(max(low - given, given - high, 0.0)))
