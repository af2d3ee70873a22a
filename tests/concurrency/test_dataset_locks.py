"""The order in which transactions lock datasets, items and experiments, so that none waits for the other."""

import time
from threading import Event

import pytest
from django.db import transaction

from evals_app.datasets.changes import change_item
from evals_app.datasets.deletion import delete_with_experiments
from evals_app.experiments.ending import count_so_far, lock_experiment
from evals_app.experiments.external import submit_result
from evals_app.models import Dataset
from tests.concurrently import run_concurrently
from tests.evals_app.experiment_runs import make_dataset, new_experiment
from tests.factories import member

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.postgres_only]  # SQLite locks no rows

PAUSE = 0.3  # seconds for which a transaction holds its first locks


@pytest.fixture
def dataset():
    return make_dataset("One")


@pytest.fixture
def experiment(dataset):
    return new_experiment(dataset, member("editor"), start=False)


def test_a_result_is_submitted_while_its_item_is_changed(dataset, experiment):
    item = dataset.items.get()
    is_changed, is_submitted = Event(), Event()

    def change():
        with transaction.atomic():
            change_item(dataset, item.pk, {"input": "Two"})
            is_changed.set()
            return is_submitted.wait(5)

    def submit():
        assert is_changed.wait(10)
        submit_result(experiment, {"item_id": str(item.pk), "output": "Yes"})
        is_submitted.set()

    assert run_concurrently([change, submit]) == [True, None]


def test_a_dataset_is_deleted_while_an_experiment_is_counted(dataset, experiment):
    is_locked = Event()

    def count():
        with transaction.atomic():
            row = lock_experiment(experiment.pk)
            is_locked.set()
            time.sleep(PAUSE)
            # After the second change of a row, PostgreSQL checks its references at the end of the transaction.
            for _ in range(2):
                count_so_far(row)

    answers = run_concurrently([count, lambda: is_locked.wait(10) and delete_with_experiments(dataset)])

    assert answers == [None, None]
    assert not Dataset.objects.exists()
