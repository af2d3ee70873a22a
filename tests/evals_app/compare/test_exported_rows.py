"""The statistics of a comparison against scipy, run on the results as the API returns them."""

import numpy as np
import pytest

from evals_app.compare.jobs import compute_now
from tests.api_client import Caller
from tests.evals_app.compare.test_comparisons import ended
from tests.evals_app.experiment_runs import make_dataset
from tests.factories import api_key, member

pytestmark = pytest.mark.django_db


def exported_scores(caller, experiment):
    """Return the score of each item from the pages of the API."""
    path = f"/api/datasets/support/experiments/{experiment.pk}/results"
    pages = [caller.get(f"{path}?perPage=20&page={number}").body for number in range(2)]
    assert pages[-1]["pagination"]["hasMore"] is False
    return {row["itemId"]: row["scores"][0]["score"] for page in pages for row in page["results"]}


def test_scipy_on_exported_rows_gives_the_same_interval_and_test():
    from scipy import stats  # takes a second, so that the collection of all tests must not import it

    random = np.random.default_rng(7)
    dataset = make_dataset(*map(str, range(40)), owner_id="support")
    before = random.uniform(0.2, 0.8, 40)
    pair = ended(dataset, before.tolist()), ended(dataset, (before + random.normal(0.05, 0.1, 40)).tolist(), number=2)

    entry = compute_now(*pair).statistics["scorers"]["exact"]

    caller = Caller(api_key(member("viewer", "support")))
    old, new = (exported_scores(caller, experiment) for experiment in pair)
    differences = np.array([new[item] - old[item] for item in sorted(old)])
    interval = stats.bootstrap((differences,), np.mean, n_resamples=9999, method="BCa", rng=20_250_101)
    signs = stats.permutation_test(
        (differences,), np.mean, permutation_type="samples", n_resamples=9999, rng=np.random.default_rng(1)
    )
    assert entry["difference"] == pytest.approx(differences.mean(), abs=1e-9)
    assert entry["low"] == pytest.approx(interval.confidence_interval.low, abs=1e-9)
    assert entry["high"] == pytest.approx(interval.confidence_interval.high, abs=1e-9)
    assert entry["pValue"] == pytest.approx(signs.pvalue, abs=0.01)
    assert entry["better"] == int((differences > 0).sum())
