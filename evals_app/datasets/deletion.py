"""The deletion of experiments and datasets, with the threads that experiments made."""

from __future__ import annotations

from django.db import transaction
from django.db.models import ProtectedError

from agentcms.errors import Conflict
from evals_app.datasets.changes import reject_move
from evals_app.experiments.memory import delete_threads_of_experiment
from evals_app.experiments.stopping import stop_runs
from evals_app.models import Dataset, Experiment
from runs_app.models import AgentRun

GATE_MESSAGE = "A release gate uses this dataset. Delete the gate first."


@transaction.atomic
def delete_experiment(experiment: Experiment) -> None:
    """Stop the open runs of an experiment, and delete it. Its runs stay until they expire."""
    locked = Experiment.objects.select_for_update(of=("self",)).filter(pk=experiment.pk).first()
    if locked is None:
        return
    locked.delete()
    stop_and_forget(experiment)  # under the lock, or its job would start more


@transaction.atomic
def delete_with_experiments(dataset: Dataset) -> None:
    """Delete a dataset with its items and experiments.

    Raise Conflict if a release gate uses it, or if it has moved to another team meanwhile.
    """
    experiments = Experiment.objects.select_for_update(of=("self",)).filter(dataset=dataset.pk).order_by("pk")
    # Experiments first: at its end, a transaction that has locked one may check its reference to the dataset.
    list(experiments.values_list("pk"))
    locked = Dataset.objects.select_for_update().filter(pk=dataset.pk).first()
    if locked is None:
        return
    reject_move(locked, dataset)
    stopped = list(experiments)  # with those that were created before the dataset was locked
    try:
        locked.delete()  # before the runs are stopped: a rollback does not continue them
    except ProtectedError:
        raise Conflict(GATE_MESSAGE, "dataset_in_use") from None
    # Those of all experiments in one order, in which others lock several runs.
    AgentRun.objects.unfinished().filter(experiment_id__in=[row.pk for row in stopped], parent=None).lock_in_order()
    for experiment in stopped:
        stop_and_forget(experiment)


def stop_and_forget(experiment: Experiment) -> None:
    """Stop the open runs of a deleted experiment, and delete its threads."""
    stop_runs(experiment)
    delete_threads_of_experiment(experiment)
