"""The results of an experiment that are worse than in an earlier one, as the database ranks them."""

import random

import pytest

from evals_app.compare.jobs import basis_of
from evals_app.compare.pairs import compute_statistics, load_figures, rank_items
from evals_app.compare.regressions import find_worse_results
from evals_app.experiments.figures import summarize_experiment, verdict_of
from evals_app.models import Experiment, ExperimentResult, ItemVersion, Scorer
from evals_app.reports.bars import missed_bars, worse_scorers
from evals_app.scorers.directions import find_inverted_scorers
from tests.evals_app.compare.test_comparisons import ended
from tests.evals_app.experiment_runs import make_dataset

pytestmark = pytest.mark.django_db

SCORES = (None, 0, 0.1, 0.3, 0.1 + 0.2, 1)


def store_scorer(key, scorer_type):
    scorer = Scorer.objects.create(pk=key)
    scorer.versions.create(version_number=1, snapshot={"name": key, "type": scorer_type})


def random_experiment(dataset, chance, attempts=2):
    """Return an experiment with random scores by two scorers. Some answers failed, and some items have none."""
    experiment = Experiment.objects.create(
        dataset=dataset, dataset_version=1, status="completed", scorer_versions={"tone": 1}
    )
    for item in ItemVersion.objects.all():
        for attempt in range(chance.randrange(attempts + 1)):
            scores = [{"scorerId": key, "score": chance.choice(SCORES)} for key in ("exact", "tone")]
            error = chance.choice([None, None, {"message": "No"}])
            values = {"item": item.item, "item_version": item, "attempt": attempt, "state": "done", "error": error}
            ExperimentResult.objects.create(experiment=experiment, scores=[] if error else scores, **values)
    return experiment


@pytest.mark.parametrize("scorer_type", ["tone", "toxicity"])
def test_the_database_ranks_items_as_comparisons_do(scorer_type):
    store_scorer("tone", scorer_type)
    chance = random.Random(7)
    dataset = make_dataset(*[f"Question {number}" for number in range(60)])
    before, after = (random_experiment(dataset, chance) for _ in range(2))
    inverted = find_inverted_scorers(before, after)
    assert inverted == ({"tone"} if scorer_type == "toxicity" else set())
    ranked = rank_items(load_figures(before), load_figures(after), inverted)
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


def test_more_of_what_is_bad_is_worse():
    store_scorer("exact", "toxicity")
    dataset = make_dataset(*map(str, range(12)))
    before, after = ended(dataset, [0.25] * 12), ended(dataset, [0.75] * 11 + [0.0], number=2)
    Experiment.objects.update(scorer_versions={"exact": 1})
    before.refresh_from_db()
    after.refresh_from_db()

    statistics = compute_statistics(before, after)

    entry = statistics["scorers"]["exact"]
    assert (entry["better"], entry["worse"], entry["lowerIsBetter"]) == (1, 11, True)
    assert entry["difference"] == pytest.approx(0.4375)
    assert [row["change"] for row in statistics["items"]] == [-0.5] * 11 + [0.25]
    assert len(find_worse_results(before, after)) == 11
    (sentence,) = worse_scorers(after, before, margin=0.1)
    assert sentence.startswith("'exact' may be worse by 0.5")
    assert worse_scorers(before, after, margin=0.1) == []


def test_a_high_score_of_an_inverted_scorer_stays_worse_after_its_deletion():
    store_scorer("exact", "toxicity")
    dataset = make_dataset(*map(str, range(12)))
    before, after = ended(dataset, [0.25] * 12), ended(dataset, [0.75] * 12, number=2)
    for experiment in (before, after):
        experiment.scorer_versions = {"exact": 1}
        experiment.summary = summarize_experiment(experiment)
        experiment.save()
    basis = basis_of(before, after)

    Scorer.objects.all().delete()

    entry = compute_statistics(before, after)["scorers"]["exact"]
    assert (entry["better"], entry["worse"], entry["lowerIsBetter"]) == (0, 12, True)
    assert basis_of(before, after) == basis


@pytest.mark.parametrize(
    ("scorer_type", "mean", "verdict", "sentences"),
    [
        ("toxicity", 0.2, "passed", []),
        ("toxicity", 0.75, "scored", ["'exact' scored 0.750. The bar is at most 0.5."]),
        ("tone", 0.2, "scored", ["'exact' scored 0.200. The bar is 0.5."]),
        ("tone", 0.75, "passed", []),
    ],
)
def test_the_bar_of_a_judge_of_what_is_bad_is_its_highest_mean(scorer_type, mean, verdict, sentences):
    store_scorer("exact", scorer_type)
    experiment = ended(make_dataset("One", "Two"), [mean] * 2)
    experiment.scorer_versions, experiment.bars = {"exact": 1}, {"exact": 0.5}
    experiment.summary = summarize_experiment(experiment)

    assert verdict_of(experiment, experiment.summary) == verdict
    assert missed_bars(experiment, experiment.bars) == sentences
    assert experiment.summary["scorers"]["exact"]["lowerIsBetter"] is (scorer_type == "toxicity")


def test_a_mean_that_equals_its_bar_but_for_the_arithmetic_reaches_it():
    dataset = make_dataset("One", "Two", "Three")
    experiment, worse = ended(dataset, [0.7, 0.8, 0.9]), ended(dataset, [0.6, 0.7, 0.8], number=2)
    experiment.bars = {"exact": 0.8}
    experiment.summary = summarize_experiment(experiment)

    assert experiment.summary["scorers"]["exact"]["mean"] < 0.8
    assert verdict_of(experiment, experiment.summary) == "passed"
    assert missed_bars(experiment, {"exact": 0.8}) == []
    assert missed_bars(experiment, {"exact": 0.80004}) == ["'exact' scored 0.800. The bar is 0.80004."]
    assert missed_bars(experiment, {"exact": 0.8004}) == ["'exact' scored 0.800. The bar is 0.8004."]
    assert compute_statistics(experiment, worse)["scorers"]["exact"]["difference"] < -0.1
    assert worse_scorers(worse, experiment, margin=0.1) == []


@pytest.mark.parametrize(
    ("scorer_type", "scores", "pass_rate", "verdict"),
    [
        ("toxicity", [0.0, 0.0], 1.0, "passed"),
        ("toxicity", [0.0, 1.0], 0.5, "failed"),
        ("toxicity", [1.0, 1.0], 0.0, "failed"),
        ("tone", [1.0, 1.0], 1.0, "passed"),
        ("tone", [0.0, 0.0], 0.0, "failed"),
    ],
)
def test_without_a_threshold_the_best_score_passes(scorer_type, scores, pass_rate, verdict):
    store_scorer("exact", scorer_type)
    experiment = ended(make_dataset("One", "Two"), scores)
    experiment.scorer_versions, experiment.gate_scorers = {"exact": 1}, ["exact"]

    experiment.summary = summarize_experiment(experiment)

    assert experiment.summary["scorers"]["exact"]["passRate"] == pass_rate
    assert verdict_of(experiment, experiment.summary) == verdict
