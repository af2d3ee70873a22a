"""Results that a program outside submitted are marked wherever they are shown."""

import re
from datetime import UTC, datetime, timedelta
from itertools import count

import pytest

from evals_app.datasets.changes import change_item
from evals_app.experiments.external import finalize_experiment, run_item, submit_result
from evals_app.models import Experiment
from tests.api_client import Caller
from tests.evals_app.compare.test_comparisons import do_jobs, ended
from tests.evals_app.experiment_runs import make_dataset, new_experiment
from tests.factories import AgentFactory, api_key, member

pytestmark = pytest.mark.django_db

EXACT = {"scorerId": "exact", "score": 1.0}


@pytest.fixture
def dataset():
    AgentFactory(id="clerk", owner_id="support")
    return make_dataset(*(f"Question {number}" for number in range(12)), owner_id="support")


@pytest.fixture
def baseline(dataset):
    row = ended(dataset, [0.0] * 12)
    figures = {"name": "Exact", "mean": 0.0, "low": 0.0, "high": 0.0, "min": 0.0, "count": 12}
    summary = {"scorers": {"exact": figures}}
    Experiment.objects.filter(pk=row.pk).update(target_type="agent", target_id="clerk", summary=summary)
    return row


@pytest.fixture
def submitted(dataset, baseline):
    experiment = new_experiment(
        dataset, member("editor", "support"), start=False, targetType="agent", targetId="clerk", name="Outside"
    )
    for item in dataset.items.all():
        score = {**EXACT, "metadata": {"judge": "ours"}}
        submit_result(experiment, {"item_id": str(item.pk), "output": "Yes", "scores": [score]})
    experiment.refresh_from_db()
    finalize_experiment(experiment)
    return experiment


def test_submitted_results_are_counted_while_the_experiment_is_open(dataset):
    experiment = new_experiment(dataset, member("editor", "support"), start=False)
    first, second = dataset.items.all()[:2]
    for item, more in ((first, {}), (second, {"error": {"message": "No"}}), (first, {})):
        submit_result(experiment, {"item_id": str(item.pk), "output": "Yes", **more})

    experiment.refresh_from_db()

    assert (experiment.status, experiment.succeeded_count, experiment.failed_count) == ("running", 1, 1)


@pytest.mark.parametrize("times", [{}, {"completed_at": "2026-11-01T10:00:00Z"}])
def test_a_result_without_a_start_has_no_duration(dataset, monkeypatch, times):
    seconds = count(1)
    monkeypatch.setattr(
        "evals_app.experiments.external.timezone.now",
        lambda: datetime(2026, 11, 1, 12, tzinfo=UTC) + timedelta(seconds=next(seconds)),
    )
    experiment = new_experiment(dataset, member("editor", "support"), start=False)

    result = submit_result(experiment, {"item_id": str(dataset.items.first().pk), "output": "Yes", **times})

    assert (result.duration_ms, result.started_at) == (0, result.completed_at)


def test_a_second_score_of_one_scorer_is_named_and_nothing_is_stored(dataset):
    experiment = new_experiment(dataset, member("editor", "support"), start=False)
    scores = [EXACT, {"scorerId": "tone", "score": 0.5}, {**EXACT, "score": 0.0}]
    body = {"itemId": str(dataset.items.all()[0].pk), "output": "Yes", "scores": scores}

    editor = Caller(api_key(member("editor", "support")))
    answer = editor.post(f"/api/datasets/support/experiments/{experiment.pk}/results", body)

    assert (answer.status_code, answer.body["issues"][0]["field"]) == (400, "scores[2].scorerId")
    assert not experiment.results.exists()


def test_an_item_that_cannot_start_is_counted_as_well(dataset):
    change_item(dataset, dataset.items.all()[0].pk, {"scorer_keys": ["missing"]})
    editor = member("editor", "support")
    experiment = new_experiment(dataset, editor, AgentFactory(owner_id="support"), start=False)

    run_item(experiment, str(dataset.items.all()[0].pk), {}, editor)

    experiment.refresh_from_db()
    assert (experiment.succeeded_count, experiment.failed_count) == (0, 1)


@pytest.fixture
def viewer():
    return Caller(api_key(member("viewer", "support")))


def test_a_comparison_marks_them(viewer, baseline, submitted):
    body = {"experimentIdA": str(baseline.pk), "experimentIdB": str(submitted.pk)}
    viewer.post("/api/datasets/support/compare", body)
    do_jobs()

    answer = viewer.post("/api/datasets/support/compare", body).body

    results = answer["items"][0]["results"]
    assert results[str(submitted.pk)] == {"output": "Yes", "scores": {"exact": 1.0}, "submitted": True}
    assert "submitted" not in results[str(baseline.pk)]
    sentence = answer["statistics"]["scorers"]["exact"]["sentence"]
    assert sentence.startswith("Outside (submitted) scores 1.00 higher")


def test_pages_count_further_attempts_as_results(client, dataset):
    client.force_login(member("editor", "support"))
    experiment = new_experiment(dataset, member("editor", "support"), start=False)
    address = f"/experiments/{experiment.pk}"
    waiting = client.get(address).content.decode()
    for item in dataset.items.all():
        submit_result(experiment, {"item_id": str(item.pk), "output": "Yes"})
    submit_result(experiment, {"item_id": str(item.pk), "output": "No", "attempt": 1})

    page = client.get(address).content.decode()

    assert "A program outside runs the items or submits their results." in waiting
    assert "Running: 13 results of 12 items" in page
    assert page.count("duration unknown · submitted") == 13
    assert "13 results of 12" in client.get("/experiments").content.decode()


def test_lists_of_scores_mark_them(viewer, baseline, submitted):
    for experiment, mark in ((submitted, True), (baseline, False)):
        scores = viewer.get(f"/api/scores/run/{experiment.pk}").body["scores"]
        assert [score["submitted"] for score in scores] == [mark] * 10


def test_the_plot_of_an_agent_marks_them(client, baseline, submitted):
    client.force_login(member("viewer", "support"))

    page = client.get("/agents/clerk/quality").content.decode()

    assert page.count('class="score-point score-submitted"') == 1
    assert "Hollow circles are results that were submitted from outside." in page
    lines = re.findall(r'<polyline class="[^"]+" points="([^"]+)"', page)
    assert [len(points.split()) for points in lines] == [1, 1]


def test_the_cost_of_submitted_results_is_unknown_and_not_zero(client, submitted):
    client.force_login(member("publisher", "support", is_staff=True))

    quality = client.get("/agents/clerk/quality").content.decode()
    listed = client.get("/admin/evals_app/experiment/").content.decode()
    page = client.get(f"/admin/evals_app/experiment/{submitted.pk}/change/").content.decode()

    assert "$0.0000" not in quality + listed + page
    assert "cost unknown, 0 tokens, 0 failures" in page


def test_what_a_program_says_about_a_score_is_kept(viewer, submitted):
    answer = viewer.get(f"/api/datasets/support/experiments/{submitted.pk}/results")

    assert answer.body["results"][0]["scores"][0]["metadata"] == {"judge": "ours"}
