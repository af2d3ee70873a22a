"""Requests about results of experiments that wait for a lock, while others change who may make them."""

import pytest

from access_app.models import Membership
from evals_app.experiments import external
from evals_app.models import Dataset
from tests.api_client import Caller
from tests.evals_app.experiment_runs import make_dataset, new_experiment
from tests.factories import api_key, member

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(
    ("change", "status"),
    [
        (lambda: Membership.objects.update(role="viewer"), 403),
        (lambda: Membership.objects.all().delete(), 404),
        (lambda: Dataset.objects.update(owner_id="legal"), 404),
    ],
)
def test_a_result_that_waited_for_the_experiment_needs_the_role_then(monkeypatch, change, status):
    dataset, editor = make_dataset("One", owner_id="support"), member("editor", "support")
    experiment = new_experiment(dataset, editor, start=False)
    lock = external.lock_experiment

    def change_and_lock(experiment_id):
        change()
        return lock(experiment_id)

    monkeypatch.setattr(external, "lock_experiment", change_and_lock)
    caller = Caller(api_key(editor))
    body = {"itemId": str(dataset.items.get().pk), "output": "Yes"}
    answer = caller.post(f"/api/datasets/{dataset.pk}/experiments/{experiment.pk}/results", body)

    assert answer.status_code == status
    assert not experiment.results.exists()
