"""The figures of the scores of an experiment."""

import math

import pytest
from scipy import stats

from evals_app.experiments.figures import figures, t_quantile


@pytest.mark.parametrize("freedom", [*range(1, 41), 100, 1_000_000])
def test_the_quantiles_are_those_of_students_t(freedom):
    assert t_quantile(freedom) == pytest.approx(stats.t.ppf(0.975, freedom), abs=6e-4)


def test_the_interval_of_few_answers_is_wider_than_with_the_normal_distribution():
    five = figures("Exact", [0.2, 0.4, 0.6, 0.8, 1.0], 1)

    interval = stats.t.interval(0.95, 4, 0.6, math.sqrt(0.1 / 5))
    assert (five["low"], five["high"]) == pytest.approx(interval, abs=1e-3)


def test_the_mean_of_one_answer_has_no_width():
    one = figures("Exact", [0.5], 0)

    assert (one["low"], one["mean"], one["high"]) == (0.5, 0.5, 0.5)
