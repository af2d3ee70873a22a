"""The deletion of a dataset."""

import pytest

from agentcms.errors import ApiError, Conflict
from evals_app.datasets.deletion import delete_experiment, delete_with_experiments
from evals_app.experiments.ending import finish_experiment
from evals_app.experiments.running.item_loop import ItemLoop
from evals_app.models import Dataset, Experiment, ReleaseGate
from runs_app.models import AgentRun
from tests.evals_app.experiment_runs import make_dataset, new_experiment
from tests.factories import AgentFactory, member
from tests.served import wait_until


@pytest.mark.usefixtures("idle_engine")
def test_a_deletion_that_a_gate_prevents_stops_no_run():
    agent = AgentFactory(model={"provider": "demo", "name": "echo", "delay": 0.02}, instructions="")
    dataset = make_dataset("word " * 100)
    ReleaseGate.objects.create(agent=agent, dataset=dataset, scorer="exact", minimum=0.5)
    item_loop = ItemLoop(new_experiment(dataset, member("editor"), agent), None)
    item_loop.begin()
    item_loop.start(0)
    run = AgentRun.objects.get()

    with pytest.raises(Conflict, match="A release gate uses this dataset"):
        delete_with_experiments(dataset)

    wait_until(lambda: AgentRun.objects.get(pk=run.pk).is_finished, 30)
    assert AgentRun.objects.get(pk=run.pk).status == "succeeded"


@pytest.mark.django_db
def test_other_datasets_and_experiments_stay():
    datasets = [make_dataset("One", pk=key) for key in ("first", "second", "third")]
    experiments = [new_experiment(dataset, member("editor"), start=False) for dataset in datasets]

    delete_experiment(experiments[1])
    delete_with_experiments(datasets[1])

    assert [*Dataset.objects.order_by("pk")] == [datasets[0], datasets[2]]
    assert {*Experiment.objects.all()} == {experiments[0], experiments[2]}


@pytest.mark.usefixtures("transactional_db")
def test_an_experiment_that_is_deleted_while_it_ends_stays_deleted():
    experiment = new_experiment(make_dataset("One"), member("editor"), start=False)
    Experiment.objects.all().delete()

    with pytest.raises(ApiError, match="not found"):
        finish_experiment(experiment, Experiment.Status.COMPLETED)

    assert not Experiment.objects.exists()
