"""The budgets of failures: of all items, and of the last ones in a row."""

from datetime import timedelta

import pytest
from django.utils import timezone

from evals_app.experiments.spending import exceeded_budget
from evals_app.models import ExperimentResult
from tests.evals_app.experiment_runs import make_dataset, run_experiment
from tests.factories import AgentFactory, member
from tests.runs import DEMO


@pytest.fixture
def with_results(idle_engine):
    """Return a function that lets the items of an experiment end in this order: failed (True) or not."""

    def store(*failures, **budget):
        dataset = make_dataset(*map(str, range(len(failures))))
        experiment = run_experiment(dataset, member("editor"), AgentFactory(model=DEMO))
        rows = ExperimentResult.objects.order_by("pk")
        for minutes, (row, has_failed) in enumerate(zip(rows, failures, strict=True)):
            row.error = {"message": "No"} if has_failed else None
            row.completed_at = timezone.now() + timedelta(minutes=minutes)
            row.save()
        experiment.budget, experiment.failed_count = budget, sum(failures)
        return experiment

    return store


@pytest.mark.parametrize(
    ("failures", "is_exceeded"),
    [
        ([True, False, False], False),
        ([False, True, True], True),
        ([True, True, False], False),
        ([True], False),
    ],
)
def test_only_the_last_items_count_in_a_row(with_results, failures, is_exceeded):
    experiment = with_results(*failures, maxConsecutiveFailures=2)

    assert exceeded_budget(experiment) == ("2 items failed in a row." if is_exceeded else "")


def test_an_item_that_runs_does_not_interrupt_the_row(with_results):
    experiment = with_results(True, True, False, maxConsecutiveFailures=2)
    experiment.results.filter(error__isnull=True).update(state=ExperimentResult.State.RUNNING)

    assert exceeded_budget(experiment) == "2 items failed in a row."


def test_a_budget_of_failures_ends_with_the_last_one(with_results):
    experiment = with_results(True, True, False, maxFailures=2)

    assert exceeded_budget(experiment) == "2 items failed."
    experiment.budget = {"maxFailures": 3}
    assert exceeded_budget(experiment) == ""
