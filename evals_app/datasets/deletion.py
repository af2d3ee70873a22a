"""The deletion of experiments and datasets, with the threads that experiments made."""

from __future__ import annotations

from django.db import transaction

from evals_app.experiments.jobs import stop_runs
from evals_app.experiments.memory import delete_threads
from evals_app.models import Dataset, Experiment


@transaction.atomic
def delete_experiment(experiment: Experiment) -> None:
    """Stop the open runs of an experiment, and delete it. Its runs stay until they expire."""
    stop_runs(experiment)
    delete_threads(experiment)
    experiment.delete()


@transaction.atomic
def delete_with_experiments(dataset: Dataset) -> None:
    """Delete a dataset with its items and experiments. Raise ProtectedError if a release gate uses it."""
    experiments = list(dataset.experiments.all())
    dataset.delete()  # before the runs are stopped: a rollback does not continue them
    for experiment in experiments:
        stop_runs(experiment)
        delete_threads(experiment)
