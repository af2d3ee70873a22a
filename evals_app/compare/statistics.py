"""Paired statistics of two experiments.

Imports scipy inside of its functions, because it takes two seconds to import. Only workers and commands call them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from agentcms.wire.json_types import JSONObject

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

# Fixed, so that the same scores always have the same interval and p-value.
RANDOM_SEED = 20_250_101
RESAMPLES = 9999
MIN_PAIRS = 10  # for an interval
MAX_RESAMPLES_IN_MEMORY = 2_000_000  # numbers in memory at once
MAX_PAIRS_OF_ALL_SIGNS = 13  # more pairs have more combinations of signs than RESAMPLES
LEVEL = 0.05
NOISE = 1e-9  # differences below this share of the scores come from the arithmetic: 0.3 - 0.2 is not 0.2 - 0.1


def compare_pairs(before: Sequence[float], after: Sequence[float]) -> JSONObject:
    """Return the statistics of pairs of scores: means, difference with interval, tests and counts."""
    differences = [0.0 if math.isclose(a, b, rel_tol=NOISE) else b - a for a, b in zip(before, after, strict=True)]
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
        noise = NOISE * max(map(abs, (*before, *after)))
        result["low"], result["high"] = bootstrap_interval(differences, noise)
        is_binary = {*before, *after} <= {0, 1}
        result["test"] = "mcnemar" if is_binary else "permutation"
        result["pValue"] = mcnemar(result["better"], result["worse"]) if is_binary else permutation(differences)
    return result


def mean(values: Sequence[float]) -> float | None:
    return math.fsum(values) / len(values) if values else None


def bootstrap_interval(differences: Sequence[float], noise: float) -> tuple[float, float]:
    """Return the 95 % interval of the mean: bias-corrected and accelerated, with a fixed seed.

    Differences that are equal up to `noise` have an interval without width.
    """
    import numpy as np  # loads slowly, as scipy does
    from scipy import stats

    values = np.asarray(differences, dtype=float)
    if np.ptp(values) <= noise:  # the resamples differ by noise alone, for which the method has no answer
        middle = math.fsum(differences) / len(differences)
        return middle, middle
    resamples = stats.bootstrap(
        (values,),
        np.mean,
        n_resamples=RESAMPLES,
        batch=max(1, MAX_RESAMPLES_IN_MEMORY // len(values)),
        method="percentile",
        rng=np.random.default_rng(RANDOM_SEED),
    )
    return correct_interval(values, resamples.bootstrap_distribution)


def correct_interval(values: NDArray[np.float64], means: NDArray[np.float64]) -> tuple[float, float]:
    """Return the interval of a mean from the means of resamples: the method BCa of scipy.

    scipy leaves out each value in turn to find the acceleration, which takes time by the square of their number. For
    a mean the same acceleration follows from the distances of the values.
    """
    import numpy as np  # loads slowly, as scipy does
    from scipy.special import ndtr, ndtri

    observed = values.mean()
    bias = ndtri((np.mean(means < observed) + np.mean(means <= observed)) / 2)
    distances = values - observed
    acceleration = np.sum(distances**3) / (6 * np.sum(distances**2) ** 1.5)
    edges = bias + ndtri([LEVEL / 2, 1 - LEVEL / 2])
    low, high = np.quantile(means, ndtr(bias + edges / (1 - acceleration * edges)))
    return float(low), float(high)


def permutation(differences: Sequence[float]) -> float:
    """Return the p-value of a paired permutation test of the mean: the sign of each difference is turned or not."""
    import numpy as np  # loads slowly, as scipy does
    from scipy import stats

    values = np.asarray(differences, dtype=float)
    if len(values) <= MAX_PAIRS_OF_ALL_SIGNS:
        return float(stats.permutation_test((values,), np.mean, permutation_type="samples").pvalue)
    means, observed = means_of_random_signs(values), values.mean()
    equal = abs(100 * np.finfo(float).eps * observed)  # scipy's tolerance
    least = min(np.sum(means <= observed + equal), np.sum(means >= observed - equal))
    return min(1.0, 2 * (int(least) + 1) / (RESAMPLES + 1))


def means_of_random_signs(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the means of values whose signs are turned at random: the numbers of scipy's test, 20 times faster.

    scipy shuffles each pair by the lowest bit of a random number of 32 bits.
    """
    import numpy as np  # loads slowly, as scipy does

    random = np.random.default_rng(RANDOM_SEED)
    rows = max(1, MAX_RESAMPLES_IN_MEMORY // len(values))
    parts = []
    for start in range(0, RESAMPLES, rows):
        shape = (min(rows, RESAMPLES - start), len(values))
        stays = (random.integers(0, 2**32, shape, dtype=np.uint32) & 1).astype(float)
        parts.append((2 * stays - 1) @ values / len(values))
    return np.concatenate(parts)


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
