"""Paired statistics of two experiments.

Imports scipy inside of its functions, because it takes two seconds to import. Only workers and commands call them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from agents_app.configuration.schema import JSONObject

SEED = 20_250_101
RESAMPLES = 9999
MIN_PAIRS = 10  # for an interval
MAX_RESAMPLES_IN_MEMORY = 2_000_000  # numbers in memory at once
LEVEL = 0.05


def compare_pairs(before: Sequence[float], after: Sequence[float]) -> JSONObject:
    """Return the statistics of pairs of scores: means, difference with interval, tests and counts."""
    differences = [b - a for a, b in zip(before, after, strict=True)]
    count = len(differences)
    result: JSONObject = {
        "pairs": count,
        "baselineMean": mean(before),
        "candidateMean": mean(after),
        "difference": mean(differences),
        "low": None,
        "high": None,
        "pValue": None,
        "test": None,
        "better": sum(value > 0 for value in differences),
        "worse": sum(value < 0 for value in differences),
        "same": sum(value == 0 for value in differences),
    }
    if count >= MIN_PAIRS:
        result["low"], result["high"] = bootstrap_interval(differences)
        is_binary = {*before, *after} <= {0, 1}
        result["test"] = "mcnemar" if is_binary else "permutation"
        result["pValue"] = mcnemar(result["better"], result["worse"]) if is_binary else permutation(before, after)
    return result


def mean(values: Sequence[float]) -> float | None:
    return math.fsum(values) / len(values) if values else None


def bootstrap_interval(differences: Sequence[float]) -> tuple[float, float]:
    """Return the 95 % interval of the mean: bias-corrected and accelerated, with a fixed seed."""
    import numpy as np  # loads slowly, as scipy does
    from scipy import stats

    if len(set(differences)) == 1:  # every resample is equal, and the method has no answer
        return differences[0], differences[0]
    values = np.asarray(differences, dtype=float)
    result = stats.bootstrap(
        (values,),
        np.mean,
        n_resamples=RESAMPLES,
        batch=max(1, MAX_RESAMPLES_IN_MEMORY // len(values)),
        method="BCa",
        rng=np.random.default_rng(SEED),
    )
    return float(result.confidence_interval.low), float(result.confidence_interval.high)


def permutation(before: Sequence[float], after: Sequence[float]) -> float:
    """Return the p-value of a paired permutation test of the means."""
    import numpy as np  # loads slowly, as scipy does
    from scipy import stats

    def statistic(x: Any, y: Any, axis: int = -1) -> Any:
        return np.mean(y - x, axis=axis)

    result = stats.permutation_test(
        (np.asarray(before, dtype=float), np.asarray(after, dtype=float)),
        statistic,
        permutation_type="samples",
        vectorized=True,
        n_resamples=RESAMPLES,
        batch=max(1, MAX_RESAMPLES_IN_MEMORY // len(before)),
        rng=np.random.default_rng(SEED),
    )
    return float(result.pvalue)


def mcnemar(better: int, worse: int) -> float:
    """Return the p-value of McNemar's exact test for yes/no scores."""
    from scipy import stats  # loads slowly

    return float(stats.binomtest(better, better + worse, 0.5).pvalue) if better + worse else 1.0


def adjust_for_many(statistics: Mapping[str, JSONObject]) -> None:
    """Set the adjusted p-value of each scorer by Holm's method, and whether a difference can be seen."""
    tested = sorted((entry["pValue"], key) for key, entry in statistics.items() if entry["pValue"] is not None)
    highest = 0.0
    for rank, (p_value, key) in enumerate(tested):
        highest = max(highest, min(1.0, p_value * (len(tested) - rank)))
        statistics[key]["adjustedPValue"] = highest
    for entry in statistics.values():
        entry.setdefault("adjustedPValue", None)
        entry["isDifferent"] = is_different(entry, several=len(tested) > 1)


def is_different(entry: JSONObject, several: bool) -> bool:
    """Return whether the interval leaves out 0, and with several scorers the adjusted p-value is small too."""
    if entry["low"] is None or entry["low"] <= 0 <= entry["high"]:
        return False
    return not several or entry["adjustedPValue"] < LEVEL
