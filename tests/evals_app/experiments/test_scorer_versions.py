"""Experiments score by the versions of scorers that were live when they began."""

import pytest

from evals_app.gates.schema import scorer_issues
from evals_app.models import Dataset, ReleaseGate
from evals_app.scorers.cached_scorers import scorer_table
from evals_app.scorers.changes import change_scorer, create_scorer
from tests.evals_app.experiment_runs import make_dataset, new_experiment, work
from tests.factories import AgentFactory, member
from tests.runs import DEMO

pytestmark = pytest.mark.usefixtures("idle_engine")


def test_a_scorer_that_changes_meanwhile_scores_by_its_earlier_version():
    snapshot = {"name": "Says", "type": "check", "presetConfig": {"check": "includes", "value": "You said"}}
    create_scorer(snapshot, owner_id="", author="ann", id="says")
    dataset = make_dataset("One", scorer_keys=["says"])
    agent = AgentFactory(model=DEMO, instructions="")

    experiment = new_experiment(dataset, member("editor"), agent)
    change_scorer("says", {"presetConfig": {"check": "includes", "value": "Never said"}}, author="ann")
    work()

    (result,) = experiment.results.all()
    assert experiment.scorer_versions == {"says": 1}
    assert [(entry["score"], entry["version"]) for entry in result.scores] == [(1.0, 1)]
    assert [(entry["scorerId"], entry["scorerName"]) for entry in result.scores] == [("says", "Says")]


def test_a_dataset_that_gets_other_scorers_meanwhile_scores_by_its_earlier_ones():
    dataset = make_dataset("One", scorer_keys=["answer-length"])
    experiment = new_experiment(dataset, member("editor"), AgentFactory(model=DEMO, instructions=""))
    Dataset.objects.update(scorer_keys=["exact"])

    work()

    (result,) = experiment.results.all()
    assert [entry["scorerId"] for entry in result.scores] == ["answer-length"]


def test_a_scorer_that_only_an_item_names_is_pinned_too():
    for key in ("says", "ends"):
        snapshot = {"name": key, "type": "check", "presetConfig": {"check": "includes", "value": "You said"}}
        create_scorer(snapshot, owner_id="", author="ann", id=key)
    dataset = make_dataset({"input": "One", "scorer_keys": ["says"]}, "Two", scorer_keys=["ends"])

    experiment = new_experiment(dataset, member("editor"), AgentFactory(model=DEMO, instructions=""))
    change_scorer("says", {"presetConfig": {"check": "includes", "value": "Never said"}}, author="ann")
    work()

    scores = {entry["scorerId"]: entry for result in experiment.results.all() for entry in result.scores}
    assert experiment.scorer_versions == {"says": 1, "ends": 1}
    assert (scores["says"]["score"], scores["says"]["version"]) == (1.0, 1)


def test_an_experiment_with_scorers_of_its_own_pins_only_those():
    for key in ("says", "ends"):
        snapshot = {"name": key, "type": "check", "presetConfig": {"check": "includes", "value": "You said"}}
        create_scorer(snapshot, owner_id="", author="ann", id=key)
    dataset = make_dataset({"input": "One", "scorer_keys": ["says"]})

    experiment = new_experiment(
        dataset, member("editor"), AgentFactory(model=DEMO, instructions=""), scorerIds=["ends"]
    )

    assert experiment.scorer_versions == {"ends": 1}


@pytest.fixture
def stored_elsewhere():
    """Store a scorer as another process does, whose change this one sees up to a second later."""
    content = scorer_table.get()
    snapshot = {"name": "New", "type": "check", "presetConfig": {"check": "includes", "value": "You said"}}
    create_scorer(snapshot, owner_id="", author="ann", id="new")
    scorer_table._cache.set("table", content)
    return content


def test_a_scorer_that_another_process_stored_just_now_scores(stored_elsewhere):
    experiment = new_experiment(
        make_dataset("One"), member("editor"), AgentFactory(model=DEMO, instructions=""), scorerIds=["new"]
    )
    scorer_table._cache.set("table", stored_elsewhere)
    work()

    (result,) = experiment.results.all()
    assert [(entry["scorerId"], entry["score"]) for entry in result.scores] == [("new", 1.0)]


def test_a_gate_may_name_a_scorer_that_another_process_stored_just_now(stored_elsewhere):
    assert scorer_issues(ReleaseGate(), "new") == []
