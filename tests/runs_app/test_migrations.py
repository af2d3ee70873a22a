"""The migration that gives child runs to the owner of the run that they came from."""

from importlib import import_module

import pytest
from django.apps import apps

from runs_app.models import AgentRun
from tests.factories import AgentFactory
from tests.runs_app.factories import RunFactory

pytestmark = pytest.mark.django_db

migration = import_module("runs_app.migrations.0005_fill_agent_owner")


@pytest.fixture
def runs(monkeypatch):
    """Return a run of the team support with two levels of child runs, stored as the previous release stored them."""
    monkeypatch.setattr(migration, "BATCH_SIZE", 2)
    run = RunFactory(agent=AgentFactory(owner_id="support"), agent_owner_id=None)
    child = RunFactory(agent=AgentFactory(), parent=run, agent_owner_id=None)
    grandchildren = [RunFactory(agent=AgentFactory(), parent=child, agent_owner_id=None) for _ in range(3)]
    alone = RunFactory(agent=AgentFactory(), agent_owner_id=None)
    return [run, child, *grandchildren, alone]


def owners(runs):
    stored = AgentRun.objects.in_bulk([run.pk for run in runs])
    return [(stored[run.pk].owner_id, stored[run.pk].agent_owner_id) for run in runs]


def test_child_runs_get_the_owner_of_their_parent(runs):
    migration.fill(apps, None)
    migration.fill(apps, None)  # an interrupted migration is repeated

    assert owners(runs) == [("support", "support"), *[("support", "")] * 4, ("", "")]


def test_it_can_be_reversed(runs):
    before = [owner for owner, _ in owners(runs)]
    migration.fill(apps, None)

    migration.restore(apps, None)

    assert [owner for owner, _ in owners(runs)] == before
