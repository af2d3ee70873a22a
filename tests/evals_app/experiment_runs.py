"""Functions that make datasets and run experiments over them in tests."""

from typing import Any

from evals_app.datasets.changes import add_items
from evals_app.experiments.creation import create_experiment
from evals_app.experiments.jobs import EXPERIMENT_JOB
from evals_app.experiments.options import parse_experiment
from evals_app.models import Dataset, Experiment
from jobs_app import runner
from jobs_app.models import Job


def make_dataset(*items: Any, pk: str = "support", owner_id: str = "", **columns: Any) -> Dataset:
    """Create a dataset with these inputs, or items as dicts of columns."""
    dataset = Dataset.objects.create(pk=pk, name=pk.title(), owner_id=owner_id, **columns)
    if items:
        add_items(dataset, [item if isinstance(item, dict) and "input" in item else {"input": item} for item in items])
    return dataset


def new_experiment(dataset: Dataset, user: Any, agent: Any = None, **body: Any) -> Experiment:
    """Create an experiment as the API does."""
    target = {"targetType": "agent", "targetId": agent.pk} if agent is not None else {}
    return create_experiment(dataset, parse_experiment({**target, **body}), user)


def work() -> None:
    """Run the waiting jobs of experiments, with those that they queue."""
    while (job := Job.objects.filter(kind=EXPERIMENT_JOB, state=Job.State.QUEUED).first()) is not None:
        done = runner.run_claimed(str(job.pk))
        assert done is not None
        assert done.state == Job.State.DONE, done.error


def run_experiment(dataset: Dataset, user: Any, agent: Any = None, **body: Any) -> Experiment:
    """Create an experiment, run it to its end and return it."""
    experiment = new_experiment(dataset, user, agent, **body)
    work()
    experiment.refresh_from_db()
    return experiment
