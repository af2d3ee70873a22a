"""Datasets, experiments and budgets in the admin, for staff of their teams."""

import pytest
from django.contrib.admin.models import LogEntry
from django.db import connection
from django.test.utils import CaptureQueriesContext

from evals_app.admin import datasets, experiments
from evals_app.datasets.changes import add_items
from evals_app.models import Dataset, Experiment, ExperimentResult
from tests.evals_app.experiment_runs import make_dataset
from tests.factories import member

pytestmark = pytest.mark.django_db

DATASETS, EXPERIMENTS = "/admin/evals_app/dataset/", "/admin/evals_app/experiment/"


@pytest.fixture
def staff(client):
    user = member("editor", "support", is_staff=True)
    client.force_login(user)
    return user


@pytest.fixture
def experiment():
    dataset = make_dataset("When do you open?", owner_id="support")
    budget = {"maxCost": 1.5, "maxTokens": 2000, "maxConsecutiveFailures": 3}
    return Experiment.objects.create(dataset=dataset, dataset_version=1, name="Nightly", budget=budget, total_items=1)


def text(answer):
    assert answer.status_code == 200, answer.content.decode()[:500]
    return answer.content.decode()


def test_experiments_show_their_budget_and_what_is_spent(client, staff, experiment):
    listed = text(client.get(EXPERIMENTS))
    page = text(client.get(f"{EXPERIMENTS}{experiment.pk}/change/"))

    assert "$1.50, 2,000 tokens, 3 failures in a row" in listed
    assert "$0.0000, 0 tokens, 0 failures" in page
    assert 'name="_save"' not in page
    assert client.get(f"{EXPERIMENTS}add/").status_code == 403
    assert client.post(f"{EXPERIMENTS}{experiment.pk}/delete/").status_code == 403


def test_scorers_and_bars_are_written_in_words(client, staff, experiment):
    experiment.scorer_keys, experiment.bars = ["exact", "length"], {"exact": 0.5}
    experiment.memory = {"thread": "trip", "resource": "ann"}
    experiment.save()

    page = text(client.get(f"{EXPERIMENTS}{experiment.pk}/change/"))

    for words in ("exact, length", "exact 0.5", "thread trip, resource ann"):
        assert f'<div class="readonly">{words}</div>' in page


def test_lists_of_a_dataset_are_written_in_words(client, staff, experiment):
    Dataset.objects.update(scorer_keys=["exact", "length"], target_ids=["clerk"], tags=[])

    page = text(client.get(f"{DATASETS}support/change/"))

    for words in ("exact, length", "clerk", "–"):
        assert f'<div class="readonly">{words}</div>' in page


def test_an_experiment_is_cancelled_and_logged(client, staff, experiment):
    client.post(EXPERIMENTS, {"action": "cancel", "_selected_action": [str(experiment.pk)]})

    assert Experiment.objects.get().cancel_requested_at is not None
    assert LogEntry.objects.get().change_message == "Cancelled."


def test_why_an_experiment_is_not_cancelled_is_said(client, staff, experiment):
    Experiment.objects.update(status="completed")

    sent = {"action": "cancel", "_selected_action": [str(experiment.pk)]}
    page = text(client.post(EXPERIMENTS, sent, follow=True))

    assert "0 of 1 experiment cancelled. Only unfinished experiments of teams" in page


def test_an_experiment_that_is_deleted_meanwhile_keeps_back_no_other(client, staff, experiment, monkeypatch):
    lost = Experiment.objects.create(dataset=experiment.dataset, dataset_version=1)
    cancel = experiments.request_cancel

    def lose_first(row):
        Experiment.objects.filter(pk=lost.pk).delete()
        cancel(row)

    monkeypatch.setattr(experiments, "request_cancel", lose_first)
    client.post(EXPERIMENTS, {"action": "cancel", "_selected_action": [str(lost.pk), str(experiment.pk)]})

    assert Experiment.objects.get().cancel_requested_at is not None
    assert LogEntry.objects.get().object_id == str(experiment.pk)


def test_a_dataset_that_is_deleted_meanwhile_keeps_back_no_other(client, staff, experiment, monkeypatch):
    make_dataset(pk="a-first", owner_id="support")
    change = datasets.change_settings

    def lose_first(dataset_id, columns):
        Dataset.objects.filter(pk="a-first").delete()
        return change(dataset_id, columns)

    monkeypatch.setattr(datasets, "change_settings", lose_first)
    client.post(DATASETS, {"action": "archive", "_selected_action": ["a-first", "support"]})

    assert Dataset.objects.get().archived_at is not None
    assert LogEntry.objects.get().object_id == "support"


def test_a_dataset_is_read_only_and_archived_by_an_action(client, staff, experiment):
    page = text(client.get(f"{DATASETS}support/change/"))
    answer = client.post(DATASETS, {"action": "archive", "_selected_action": ["support"]}, follow=True)

    assert 'name="_save"' not in page
    assert "When do you open?" not in page
    assert "1 of 1 dataset archived." in text(answer)
    assert Dataset.objects.get().archived_at is not None
    client.post(DATASETS, {"action": "unarchive", "_selected_action": ["support"]})
    assert Dataset.objects.get().archived_at is None


def test_opening_the_items_is_recorded(client, staff, experiment):
    page = text(client.get(f"{DATASETS}support/items/"))

    assert "When do you open?" in page
    assert LogEntry.objects.get().change_message == "Opened the items of this dataset."


def test_staff_see_their_teams_alone_and_viewers_change_nothing(client, experiment):
    client.force_login(member("viewer", "support", is_staff=True))
    client.post(EXPERIMENTS, {"action": "cancel", "_selected_action": [str(experiment.pk)]})
    client.post(DATASETS, {"action": "archive", "_selected_action": ["support"]})
    assert Experiment.objects.get().cancel_requested_at is None
    assert Dataset.objects.get().archived_at is None

    client.force_login(member("manager", "elsewhere", is_staff=True))
    assert "Nightly" not in text(client.get(EXPERIMENTS))
    assert f"{DATASETS}support/" not in text(client.get(DATASETS))
    assert client.get(f"{DATASETS}support/items/").status_code == 404
    assert not LogEntry.objects.exists()


@pytest.mark.parametrize(
    ("budget", "label"),
    [
        ({}, "None"),
        ({"maxCost": 0}, "$0.00"),
        ({"maxCost": 0.0025, "maxFailures": 2}, "$0.0025, 2 failures"),
        ({"maxTokens": 1, "maxFailures": 1}, "1 token, 1 failure"),
        ({"maxCost": 1500, "maxTokens": None}, "$1,500.00"),
    ],
)
def test_each_limit_of_a_budget_is_listed(client, staff, experiment, budget, label):
    Experiment.objects.update(budget=budget)

    assert f'<td class="field-budget_text">{label}</td>' in text(client.get(EXPERIMENTS))


def add_results(experiment, count):
    """Add items to the dataset of an experiment, with results that cost a cent and ten tokens."""
    versions = add_items(experiment.dataset, [{"input": f"Question {number}"} for number in range(count)])
    ExperimentResult.objects.bulk_create(
        ExperimentResult(
            experiment=experiment, item_id=version.item_id, item_version=version, state="done", cost=0.01, tokens=10
        )
        for version in versions
    )


def test_the_spent_part_of_a_budget_is_that_of_all_results(client, staff, experiment):
    add_results(experiment, 3)
    Experiment.objects.update(status="running")

    assert "$0.0300, 30 tokens, 0 failures" in text(client.get(f"{EXPERIMENTS}{experiment.pk}/change/"))


def count_queries(client, path):
    with CaptureQueriesContext(connection) as captured:
        text(client.get(path))
    return len(captured)


def test_lists_and_pages_take_a_constant_number_of_queries(client, staff, experiment):
    pages = [DATASETS, f"{DATASETS}support/change/", f"{DATASETS}support/items/"]
    pages += [EXPERIMENTS, f"{EXPERIMENTS}{experiment.pk}/change/", f"{EXPERIMENTS}?q=nightly&status__exact=pending"]
    for path in pages:
        client.get(path)  # fills the cache of content types
    few = [count_queries(client, path) for path in pages]
    add_results(experiment, 20)
    for number in range(5):
        dataset = make_dataset(pk=f"d{number}", owner_id="support")
        for name in ("Nightly", "Other"):
            Experiment.objects.create(dataset=dataset, dataset_version=0, name=name, budget={"maxCost": number})
    Experiment.objects.create(dataset=experiment.dataset, dataset_version=1)

    assert [count_queries(client, path) for path in pages] == few


def test_datasets_are_filtered_by_team_also_by_shared(client, staff):
    for owner in ("", "support", "legal"):
        make_dataset("When do you open?", owner_id=owner, pk=f"of-{owner or 'shared'}")

    shared = text(client.get(DATASETS, {"owner": "="}))

    assert ("of-shared" in shared, "of-support" in shared) == (True, False)
    assert '<a href="?owner=%3D">Shared</a>' in shared
    assert "legal" not in shared
