"""The spending of experiments: sums of what is known, steps of lost runs, and answers that are not kept."""

from decimal import Decimal

import pytest

from evals_app.experiments.spending import (
    NOTHING_SPENT,
    Spent,
    add_earlier_spending,
    spent_by_step,
    spent_by_steps,
    total_spent,
)
from evals_app.models import Experiment
from runs_app.models import RunEvent
from tests.evals_app.experiment_runs import make_dataset, new_experiment
from tests.factories import AgentFactory, member
from tests.runs_app.factories import RunFactory

USAGE = {"inputTokens": 1000, "outputTokens": 1000, "totalTokens": 2000}


def test_what_costs_nothing_is_known_and_what_is_not_known_is_left_out():
    free, paid = Spent(0, Decimal(0)), Spent(3, Decimal("0.5"))

    assert total_spent([NOTHING_SPENT, free]) == free
    assert total_spent([paid, NOTHING_SPENT, paid]) == Spent(6, Decimal(1))
    assert total_spent([]) == total_spent([NOTHING_SPENT]) == NOTHING_SPENT
    assert [spent.is_known for spent in (free, NOTHING_SPENT, Spent(tokens=0), Spent(cost=Decimal(0)))] == [
        *(True, False, True, True)
    ]


@pytest.mark.parametrize(
    ("payload", "expected"),
    [
        ({"output": {"usage": USAGE}, "metadata": {"modelId": "gpt-4o"}}, Spent(2000, Decimal("0.0125"))),
        ({"output": {"usage": USAGE}}, Spent(2000, None)),
        ({"output": {"usage": None}, "metadata": {"modelId": "gpt-4o"}}, NOTHING_SPENT),
        ({"output": {}, "metadata": {"modelId": "gpt-4o"}}, NOTHING_SPENT),
        ({"output": None, "metadata": None}, NOTHING_SPENT),
    ],
)
def test_a_step_has_spent_what_its_end_says(payload, expected):
    assert spent_by_step(payload) == expected


@pytest.mark.django_db
def test_a_step_without_an_end_that_can_be_read_has_spent_nothing():
    run = RunFactory(chunks=[("step-finish", {"output": {"usage": USAGE}}), ("step-finish", {})])
    run.events.update(type=RunEvent.Type.STEP_FINISH)
    run.events.filter(number=2).update(data={"type": "step-finish", "payload": None})

    assert spent_by_steps(run) == Spent(2000, None)


@pytest.fixture
def experiment(db):
    return new_experiment(make_dataset("One"), member("editor"), AgentFactory())


SPENT = Spent(5, Decimal("0.25"))


def test_an_open_experiment_gets_its_summary_at_its_end(experiment):
    add_earlier_spending(experiment.pk, SPENT)
    add_earlier_spending(experiment.pk, Spent(tokens=1))

    row = Experiment.objects.get()
    assert (row.earlier_tokens, row.earlier_cost, row.summary) == (6, Decimal("0.25"), experiment.summary)


def test_the_summary_of_an_experiment_that_has_ended_grows(experiment):
    figures = {"cost": 1.0, "tokens": 10, "earlierCost": 0.5, "earlierTokens": 2}
    Experiment.objects.update(status=Experiment.Status.COMPLETED, summary={"scores": {"a": 1}, **figures})

    add_earlier_spending(experiment.pk, SPENT)
    add_earlier_spending(experiment.pk, NOTHING_SPENT)

    grown = {"cost": 1.25, "tokens": 15, "earlierCost": 0.75, "earlierTokens": 7}
    assert Experiment.objects.get().summary == {"scores": {"a": 1}, **grown}


def test_only_one_experiment_has_spent_it(experiment):
    other = new_experiment(experiment.dataset, member("editor"), AgentFactory())

    add_earlier_spending(experiment.pk, SPENT)

    assert Experiment.objects.get(pk=other.pk).earlier_tokens == 0
