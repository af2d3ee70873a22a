"""Scorers that are deleted, changed or replaced by those of other teams while an experiment runs."""

import pytest

from agentcms.errors import Conflict
from evals_app.experiments import scoring
from evals_app.experiments.ending import mark_cancelled
from evals_app.models import Scorer
from evals_app.scorers.changes import change_scorer, create_scorer, delete_scorer, delete_version
from runs_app.engine.thread_pools import run_db
from tests.evals_app.experiment_runs import make_dataset, new_experiment, work
from tests.factories import AgentFactory, member
from tests.runs import DEMO

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("idle_engine")]

CHECK = {"type": "check", "name": "Long", "presetConfig": {"check": "includes", "value": "e"}}


MISSING = (
    "Version 1 of the scorer 'long' was deleted, or the dataset moved to a team without this scorer. Start another "
    "experiment."
)


def delete():
    """Delete the scorer as at the moment at which the experiment was created, when nothing refused it yet."""
    Scorer.objects.all().delete()


def replace_by_another_team():
    delete()
    create_scorer(CHECK, owner_id="legal", author="lea", id="long")


def change():
    change_scorer("long", {"name": "Longer"}, author="tom")


def begin(owner_id="support", **body):
    """Create a scorer of the owner, and an experiment of the team support that names it."""
    create_scorer(CHECK, owner_id=owner_id, author="tom", id="long")
    agent = AgentFactory(model=DEMO, owner_id="support")
    dataset = make_dataset("One", owner_id="support")
    return new_experiment(dataset, member("editor", "support"), agent, **{"scorerIds": ["long"], **body})


@pytest.mark.parametrize(
    ("act", "error", "version"),
    [
        (delete, MISSING, None),
        (replace_by_another_team, MISSING, None),
        (change, None, 1),
    ],
)
def test_an_experiment_uses_the_scorer_with_which_it_began_or_none(monkeypatch, act, error, version):
    experiment = begin()

    read = scoring.read_scored_answer

    async def act_and_read(result):
        """Read the answer of a run that has ended, after the act."""
        await run_db(act)
        return await read(result)

    monkeypatch.setattr(scoring, "read_scored_answer", act_and_read)
    work()

    (score,) = experiment.results.get().scores
    assert (score["error"], score.get("version")) == (error, version)
    assert Scorer.objects.exists() or act is delete


@pytest.mark.parametrize("owner_id", ["support", ""])
def test_a_scorer_is_deleted_only_after_the_end_of_its_experiments(owner_id):
    begin(owner_id)

    with pytest.raises(Conflict, match="An experiment that has not ended uses this scorer"):
        delete_scorer(Scorer.objects.get(pk="long"))
    work()
    delete_scorer(Scorer.objects.get(pk="long"))

    assert not Scorer.objects.exists()


def test_a_scorer_that_an_experiment_tests_is_not_deleted():
    begin()
    work()
    dataset = make_dataset({"input": {"output": "Hello"}}, pk="answers", owner_id="support")
    new_experiment(dataset, member("editor", "support"), targetType="scorer", targetId="long", scorerIds=[])

    with pytest.raises(Conflict, match="uses this scorer"):
        delete_scorer(Scorer.objects.get(pk="long"))


def test_a_version_is_deleted_only_after_the_end_of_its_experiments():
    begin()
    row = change_scorer("long", {"name": "Longer"}, author="tom")
    first = row.versions.get(version_number=1)

    with pytest.raises(Conflict, match="An experiment that has not ended uses this version"):
        delete_version(row, first)
    work()
    delete_version(row, first)

    assert [version.version_number for version in row.versions.all()] == [2]


def cancel(experiment):
    mark_cancelled(experiment)


def drive_outside(experiment):
    """Make it an experiment of a program outside, which may have been given up."""
    type(experiment).objects.update(is_external=True)


def move_dataset(experiment):
    """Make it an experiment of another team, which cannot use the scorer."""
    type(experiment.dataset).objects.update(owner_id="legal")


@pytest.mark.parametrize("change_experiment", [cancel, drive_outside, move_dataset])
def test_other_experiments_keep_no_scorer(change_experiment):
    change_experiment(begin())

    delete_scorer(Scorer.objects.get(pk="long"))

    assert not Scorer.objects.exists()
