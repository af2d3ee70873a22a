"""Scorers that are deleted, changed or replaced by those of other teams while an experiment runs."""

import pytest

from evals_app.experiments import scoring
from evals_app.models import Scorer
from evals_app.scorers.changes import change_scorer, create_scorer, delete_scorer
from runs_app.engine.thread_pools import run_db
from tests.evals_app.experiment_runs import make_dataset, new_experiment, work
from tests.factories import AgentFactory, member
from tests.runs import DEMO

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("idle_engine")]

CHECK = {"type": "check", "name": "Long", "presetConfig": {"check": "includes", "value": "e"}}


def delete():
    delete_scorer("long")


def replace_by_another_team():
    delete_scorer("long")
    create_scorer(CHECK, owner_id="legal", author="lea", id="long")


def change():
    change_scorer("long", {"name": "Longer"}, author="tom")


@pytest.mark.parametrize(
    ("act", "error", "version"),
    [
        (delete, "Unknown scorer 'long'. Choose a registered scorer or create one.", None),
        (replace_by_another_team, "Unknown scorer 'long'. Choose a registered scorer or create one.", None),
        (change, None, 1),
    ],
)
def test_an_experiment_uses_the_scorer_with_which_it_began_or_none(monkeypatch, act, error, version):
    create_scorer(CHECK, owner_id="support", author="tom", id="long")
    agent = AgentFactory(model=DEMO, owner_id="support")
    dataset = make_dataset("One", owner_id="support")
    experiment = new_experiment(dataset, member("editor", "support"), agent, scorerIds=["long"])

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
