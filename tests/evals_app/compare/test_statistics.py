"""Paired statistics: against scipy run by hand, simulations, and the words for them."""

import numpy as np
import pytest

from evals_app.compare.comparison_in_words import describe_statistics
from evals_app.compare.statistics import LEVEL, RANDOM_SEED, adjust_for_many, compare_pairs
from evals_app.models import Experiment
from tests.conftest import DRILL

SIMULATIONS = 1000 if DRILL else 12
SIMULATIONS_WITH_AN_EFFECT, MOST_MISSES = (100, 1) if DRILL else (6, 0)
ITEMS = 200


def scores(seed, effect=0.0, spread=0.1, items=ITEMS):
    random = np.random.default_rng(seed)
    before = random.uniform(0.2, 0.8, items)
    return list(before), list(before + effect + random.normal(0, spread, items))


def compared(before, after):
    entry = compare_pairs(before, after)
    adjust_for_many({"one": entry})
    return entry


def test_the_interval_and_the_test_are_those_of_scipy():
    from scipy import stats  # takes a second, so that the collection of all tests must not import it

    before, after = scores(1, effect=0.03)
    differences = np.array(after) - np.array(before)
    interval = stats.bootstrap(
        (differences,), np.mean, n_resamples=9999, method="BCa", rng=np.random.default_rng(RANDOM_SEED)
    ).confidence_interval
    test = stats.permutation_test(
        (before, after),
        lambda x, y, axis: np.mean(y - x, axis=axis),
        permutation_type="samples",
        n_resamples=9999,
        rng=np.random.default_rng(RANDOM_SEED),
    )

    entry = compared(before, after)

    assert entry["difference"] == pytest.approx(differences.mean(), abs=1e-9)
    assert (entry["low"], entry["high"]) == pytest.approx((interval.low, interval.high), abs=1e-9)
    assert entry["pValue"] == pytest.approx(test.pvalue, abs=1e-9)
    assert entry["test"] == "permutation"


def test_scores_of_yes_and_no_are_tested_by_mcnemar():
    from scipy import stats

    before, after = [0.0] * 14 + [1.0] * 6 + [1.0] * 30, [1.0] * 14 + [0.0] * 6 + [1.0] * 30

    entry = compared(before, after)

    assert entry["test"] == "mcnemar"
    assert entry["pValue"] == pytest.approx(stats.binomtest(14, 20, 0.5).pvalue, abs=1e-9)
    assert (entry["better"], entry["worse"], entry["same"]) == (14, 6, 30)


def test_simulations_without_an_effect_see_no_difference():
    false_alarms = sum(compared(*scores(seed))["isDifferent"] for seed in range(SIMULATIONS))

    assert false_alarms <= max(2, SIMULATIONS * 0.06)


def test_simulations_with_an_effect_see_it():
    entries = [compared(*scores(seed, effect=0.1)) for seed in range(SIMULATIONS_WITH_AN_EFFECT)]

    misses = [entry for entry in entries if not entry["isDifferent"] or entry["pValue"] > LEVEL or entry["low"] <= 0]
    assert len(misses) <= MOST_MISSES


def test_equal_differences_have_an_interval_without_width():
    entry = compared([0.5] * 12, [0.75] * 12)

    assert (entry["low"], entry["high"], entry["isDifferent"]) == (0.25, 0.25, True)


def test_each_score_higher_by_the_same_has_an_interval_without_width():
    before, after = [number / 10 for number in range(11)], [(number + 1) / 10 for number in range(11)]

    entry = compared(before, after)

    assert len({b - a for a, b in zip(before, after, strict=True)}) > 1
    assert (entry["low"], entry["high"]) == pytest.approx((0.1, 0.1), abs=1e-9)
    assert entry["isDifferent"]


def test_scores_that_differ_by_rounding_alone_are_the_same():
    entry = compared([0.1 + 0.2] * 12, [0.3] * 12)

    assert (entry["better"], entry["worse"], entry["same"]) == (0, 0, 12)


@pytest.mark.parametrize("count", [10, 13, 14, 60])
@pytest.mark.parametrize("digits", [1, 15], ids=["ties", "no ties"])
def test_few_pairs_and_ties_have_the_interval_and_the_test_of_scipy(count, digits):
    from scipy import stats

    random = np.random.default_rng(count)
    before, after = np.round(random.uniform(0, 1, (2, count)), digits)
    interval = stats.bootstrap(
        (after - before,), np.mean, n_resamples=9999, method="BCa", rng=np.random.default_rng(RANDOM_SEED)
    ).confidence_interval
    test = stats.permutation_test(
        (after - before,),
        np.mean,
        permutation_type="samples",
        n_resamples=9999,
        rng=np.random.default_rng(RANDOM_SEED),
    )

    entry = compared(before.tolist(), after.tolist())

    assert (entry["low"], entry["high"]) == pytest.approx((interval.low, interval.high), abs=1e-9)
    assert entry["pValue"] == pytest.approx(test.pvalue, abs=1e-9)


def test_few_pairs_have_no_interval():
    entry = compared([0.0] * 9, [1.0] * 9)

    assert (entry["low"], entry["pValue"], entry["isDifferent"]) == (None, None, False)


def test_several_scorers_are_corrected_by_holm():
    entries = {name: {"pValue": p, "low": 0.1, "high": 0.2} for name, p in [("a", 0.01), ("b", 0.04), ("c", 0.03)]}

    adjust_for_many(entries)

    assert [entries[name]["adjustedPValue"] for name in "abc"] == pytest.approx([0.03, 0.06, 0.06])
    assert [entries[name]["isDifferent"] for name in "abc"] == [True, False, False]


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({}, "Version 7 scores 0.03 higher (0.01 to 0.05); 18 items better, 9 worse, 173 the same."),
        (
            {"difference": -0.2, "low": -0.3, "high": -0.1, "better": 1},
            "Version 7 scores 0.20 lower (0.10 to 0.30); 1 item better, 9 worse, 173 the same.",
        ),
        ({"isDifferent": False}, "No difference can be seen with 200 items."),
        ({"pairs": 9}, "18 items better, 9 worse, 173 the same. 10 pairs are needed for an interval."),
        ({"pairs": 0}, "No item has a score in both experiments."),
    ],
)
def test_the_statistics_are_described_in_a_sentence(change, sentence):
    entry = {"pairs": 200, "difference": 0.03, "low": 0.01, "high": 0.05, "isDifferent": True}
    entry |= {"better": 18, "worse": 9, "same": 173}

    assert describe_statistics({**entry, **change}, Experiment(), Experiment(version_number=7)) == sentence


def test_the_sentence_names_the_agent_of_a_version_where_two_agents_are_compared():
    entry = {"pairs": 20, "difference": 0.2, "low": 0.1, "high": 0.3, "isDifferent": True}
    entry |= {"better": 12, "worse": 3, "same": 5}
    baseline, candidate = (Experiment(target_id=key, version_number=2) for key in ("porter", "concierge"))

    sentence = describe_statistics(entry, baseline, candidate)

    assert sentence == "concierge v2 scores 0.20 higher (0.10 to 0.30); 12 items better, 3 worse, 5 the same."
