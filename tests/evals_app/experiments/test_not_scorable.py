"""Answers that are not scorable are counted apart: neither zeros nor failures, in figures and comparisons."""

import pytest

from agents_app.registry import Entry, Kind, registry
from evals_app.compare.jobs import compute_now
from evals_app.compare.pairs import compute_statistics
from evals_app.experiments.figures import count_results, summarize_experiment
from evals_app.models import Experiment, ExperimentResult, ItemVersion
from runs_app.scoring import compute_score
from tests.evals_app.experiment_runs import make_dataset, run_experiment
from tests.factories import AgentFactory, member
from tests.runs import DEMO
from tests.runs_app.factories import RunFactory

pytestmark = pytest.mark.django_db

SAID = "I am the demo model 'echo'. You said: {}"


def experiment_with(dataset, entries):
    """Create an experiment whose results have these scores: a number, None for not scorable, or an error."""
    experiment = Experiment.objects.create(dataset=dataset, dataset_version=1)
    versions = ItemVersion.objects.filter(dataset=dataset).order_by("item_id")
    for version, entry in zip(versions, entries, strict=True):
        error = entry if isinstance(entry, str) else ""
        score = {"scorerId": "exact", "scorerName": "Exact", "score": None if error else entry, "error": error}
        ExperimentResult.objects.create(
            experiment=experiment, item_id=version.item_id, item_version=version, state="done", scores=[score]
        )
    return experiment


def test_figures_count_what_is_not_scorable_apart_from_errors():
    experiment = experiment_with(make_dataset("One", "Two", "Three", "Four"), [1.0, 0.5, None, "No key"])

    figures = summarize_experiment(experiment)["scorers"]["exact"]
    counts = count_results(experiment)

    assert (figures["count"], figures["notScorable"], figures["errors"], figures["unscored"]) == (2, 1, 1, 2)
    assert (figures["mean"], figures["min"], figures["passRate"]) == (0.75, 0.5, 0.5)
    assert (counts["succeeded"], counts["failed"]) == (4, 0)


def test_the_pass_rate_follows_the_threshold_of_the_scorer():
    dataset = make_dataset("One", "Two", "Three", "Four")
    experiment = experiment_with(dataset, [0.8, 0.6, 0.0, 1.0])
    labels = ["pass", "fail", "pass", None]  # the third is of a scorer whose high scores are bad
    for result, label in zip(experiment.results.order_by("item_id"), labels, strict=True):
        result.scores = [{**result.scores[0], "label": label}]
        result.save()

    assert summarize_experiment(experiment)["scorers"]["exact"]["passRate"] == 0.75


def test_a_comparison_counts_what_is_not_scorable_on_each_side():
    dataset = make_dataset("One", "Two", "Three")
    baseline = experiment_with(dataset, [1.0, None, None])
    candidate = experiment_with(dataset, [1.0, 0.5, None])

    statistics = compute_statistics(baseline, candidate)["scorers"]["exact"]

    assert (statistics["baselineNotScorable"], statistics["candidateNotScorable"]) == (2, 1)
    assert (statistics["baselineMean"], statistics["candidateMean"], statistics["same"]) == (1.0, 1.0, 1)


def test_a_comparison_counts_the_errors_of_a_scorer_also_if_it_failed_for_every_answer(client):
    dataset = make_dataset("One", "Two", "Three")
    broken, mended = experiment_with(dataset, ["No key"] * 3), experiment_with(dataset, [1.0, None, "No key"])
    Experiment.objects.update(status="completed")

    statistics = compute_statistics(broken, broken)["scorers"]["exact"]
    compute_now(Experiment.objects.get(pk=broken.pk), Experiment.objects.get(pk=mended.pk))
    client.force_login(member("viewer"))
    page = client.get(f"/experiments/compare?a={broken.pk}&b={mended.pk}").content.decode()

    assert [statistics[name] for name in ("pairs", "baselineErrors", "candidateErrors")] == [0, 3, 3]
    assert "No item has a score in both experiments." in page
    assert "Errors of the scorer: 3 before, 1 after." in page


@pytest.mark.usefixtures("idle_engine")
def test_without_a_ground_truth_there_is_nothing_to_compare():
    dataset = make_dataset({"input": "One", "ground_truth": SAID.format("One")}, "Two")
    keys = ["exact", "includes-ground-truth", "agreement"]

    experiment = run_experiment(dataset, member("editor"), AgentFactory(model=DEMO, instructions=""), scorerIds=keys)

    figures = experiment.summary["scorers"]
    assert [(figures[key]["mean"], figures[key]["notScorable"]) for key in keys[:2]] == [(1.0, 1), (1.0, 1)]
    assert (figures["agreement"]["errors"], figures["agreement"]["notScorable"]) == (1, 1)
    (entry,) = [entry for entry in experiment.results.last().scores if entry["scorerId"] == "exact"]
    assert (entry["label"], entry["reason"]) == ("not scorable", "There is no ground truth to compare with.")


def test_an_answer_in_use_has_no_ground_truth():
    columns = compute_score(RunFactory(output="One"), "exact")

    assert (columns["score"], columns["label"], columns["error"]) == (None, "not scorable", "")


@pytest.mark.usefixtures("idle_engine")
@pytest.mark.parametrize("score", [1e200, float("nan")])
def test_a_score_that_no_statistics_can_use_is_an_error(score):
    registry.add(Entry(Kind.SCORER, "huge", "Huge", target=lambda answer: score))
    try:
        agent = AgentFactory(model=DEMO, instructions="")
        experiment = run_experiment(make_dataset("One", "Two"), member("editor"), agent, scorerIds=["huge"])
    finally:
        registry.remove(Kind.SCORER, "huge")

    assert (experiment.status, experiment.summary["scorers"]["huge"]["errors"]) == ("completed", 2)
    assert experiment.results.first().scores[0]["error"] == "The score is not a number up to 1,000,000."
