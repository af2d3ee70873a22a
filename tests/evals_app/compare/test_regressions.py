"""The results of an experiment that are worse than in an earlier one, as the database ranks them."""

import random

import pytest

from evals_app.compare.pairs import load_figures, rank_items
from evals_app.compare.regressions import find_worse_results
from evals_app.models import Experiment, ExperimentResult, ItemVersion
from tests.evals_app.experiment_runs import make_dataset

pytestmark = pytest.mark.django_db

SCORES = (None, 0, 0.1, 0.3, 0.1 + 0.2, 1)


def random_experiment(dataset, chance, attempts=2):
    """Return an experiment with random scores by two scorers. Some answers failed, and some items have none."""
    experiment = Experiment.objects.create(dataset=dataset, dataset_version=1, status="completed")
    for item in ItemVersion.objects.all():
        for attempt in range(chance.randrange(attempts + 1)):
            scores = [{"scorerId": key, "score": chance.choice(SCORES)} for key in ("exact", "tone")]
            error = chance.choice([None, None, {"message": "No"}])
            values = {"item": item.item, "item_version": item, "attempt": attempt, "state": "done", "error": error}
            ExperimentResult.objects.create(experiment=experiment, scores=[] if error else scores, **values)
    return experiment


def test_the_database_ranks_items_as_comparisons_do():
    chance = random.Random(7)
    dataset = make_dataset(*[f"Question {number}" for number in range(60)])
    before, after = (random_experiment(dataset, chance) for _ in range(2))
    ranked = rank_items(load_figures(before), load_figures(after))
    changes = {row["itemId"]: round(row["change"], 12) for row in ranked if round(row["change"], 12) < 0}

    keys = find_worse_results(before, after)

    results = after.results.in_bulk(keys)
    order = [str(results[key].item_id) for key in keys]
    places = [(changes[str(results[key].item_id)], results[key].item_id, results[key].attempt) for key in keys]
    assert 5 < len(changes) < 50
    assert {*order} == {*changes}
    assert places == sorted(places)
    assert len(keys) == len({*keys}) == after.results.filter(item__in=changes).count()  # each attempt once
    assert find_worse_results(before, before) == []
