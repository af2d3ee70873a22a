"""Answers that are scored again: many of them are read in parts, and items whose runs were deleted run anew."""

import weakref

import pytest
from django.db.models.signals import post_init

from agents_app.registry import Entry, Kind, registry
from evals_app.experiments import results, stopping
from evals_app.experiments.retrying import retry_failed
from evals_app.experiments.running.item_loop import ItemLoop
from evals_app.experiments.stopping import end_at_once, end_early
from evals_app.models import ExperimentResult
from runs_app.models import AgentRun
from tests.evals_app.experiment_runs import make_dataset, run_experiment, work

pytestmark = pytest.mark.usefixtures("idle_engine")
ITEMS = [str(number) for number in range(12)]


@pytest.fixture
def scorer():
    """A scorer that fails until it is mended."""
    fails = [True]

    def own(answer):
        if fails:
            raise ValueError("Not yet.")
        return 1.0

    registry.add(Entry(Kind.SCORER, "own", "Own", target=own))
    yield fails
    registry.remove(Kind.SCORER, "own")


@pytest.fixture
def unscored(editor, agent, scorer):
    """An experiment whose scorer has failed for all answers, and works now."""
    experiment = run_experiment(make_dataset(*ITEMS), editor, agent, scorerIds=["own"], maxConcurrency=1)
    scorer.clear()
    return experiment


@pytest.fixture
def most_in_memory():
    """The highest number of results in memory at once."""
    living, most = weakref.WeakSet(), [0]

    def count(instance, **kwargs):
        living.add(instance)
        most[0] = max(most[0], len(living))

    # By its identity: the database has the same row several times.
    ExperimentResult.__hash__, before = object.__hash__, ExperimentResult.__hash__
    post_init.connect(count, sender=ExperimentResult)
    yield most
    post_init.disconnect(count, sender=ExperimentResult)
    ExperimentResult.__hash__ = before


def test_items_whose_runs_were_deleted_run_again_within_the_limit(editor, unscored):
    AgentRun.objects.all().delete()

    assert retry_failed(unscored, editor) == len(ITEMS)

    unscored.refresh_from_db()
    item_loop = ItemLoop(unscored, None)
    item_loop.begin()
    item_loop.step()
    assert AgentRun.objects.count() == 1
    work()
    unscored.refresh_from_db()
    assert (unscored.status, unscored.summary["scorers"]["own"]["count"]) == ("completed", len(ITEMS))


def test_many_answers_are_scored_again_some_at_a_time(editor, unscored, most_in_memory, monkeypatch):
    monkeypatch.setattr(results, "OPEN_RESULTS_PER_READ", 3)
    retry_failed(unscored, editor)
    most_in_memory[0] = 0

    work()

    unscored.refresh_from_db()
    assert unscored.summary["scorers"]["own"]["count"] == len(ITEMS)
    assert most_in_memory[0] < len(ITEMS)


@pytest.mark.parametrize("end", [end_early, end_at_once])
def test_many_answers_that_are_not_scored_any_more_are_stopped_some_at_a_time(
    editor, unscored, most_in_memory, monkeypatch, end
):
    monkeypatch.setattr(results, "OPEN_RESULTS_PER_READ", 3)
    monkeypatch.setattr(stopping, "STOP_SECONDS", 0)
    retry_failed(unscored, editor)
    unscored.refresh_from_db()
    most_in_memory[0] = 0

    end(unscored, "cancelled")

    assert (unscored.status, unscored.results.filter(state="running").count()) == ("cancelled", 0)
    assert most_in_memory[0] < len(ITEMS)
