"""Release gates hold for undo, imports and parallel processes too."""

import json

import pytest

from agents_app.configuration.refusals import GateNotMet
from agents_app.editing.change_context import change
from evals_app.models import ReleaseGate
from tests.api_client import Caller, agent_path
from tests.evals_app.experiment_runs import make_dataset
from tests.evals_app.gates.test_gates import experiment_of, live_number
from tests.factories import AgentFactory, api_key, member

pytestmark = pytest.mark.django_db


@pytest.fixture
def agent():
    row = AgentFactory(id="concierge", instructions="One")
    make_dataset("One")
    ReleaseGate.objects.create(agent=row, dataset_id="support", scorer="exact", minimum=0.8)
    return row


def test_undo_never_publishes_what_was_not_live(agent):
    with change(publish=False):
        draft = agent.edit({"instructions": "Two"})
    experiment_of(draft)
    draft.activate()
    with change(publish=False):
        unmet = agent.edit({"instructions": "Three"})

    agent.activations.first().undo()

    assert live_number(agent) == 1
    with pytest.raises(GateNotMet):
        unmet.activate()
    assert live_number(agent) == 1


def test_a_gate_that_is_added_later_leaves_what_is_live(agent):
    ReleaseGate.objects.all().delete()
    agent.edit({"instructions": "Two"})
    ReleaseGate.objects.create(agent=agent, dataset_id="support", scorer="exact", minimum=0.8)

    agent.activations.first().undo()

    assert live_number(agent) == 1


def test_a_bar_that_is_raised_holds_for_the_next_version(agent):
    with change(publish=False):
        draft = agent.edit({"instructions": "Two"})
    experiment_of(draft, mean=0.85)
    agent.gates.update(minimum=0.9)

    with pytest.raises(GateNotMet, match="its last experiment scored"):
        draft.activate()


def test_strangers_to_a_team_gate_learn_nothing_of_its_dataset(agent):
    AgentFactory(id="own", owner_id="support")
    make_dataset("One", pk="secret", owner_id="support")
    ReleaseGate.objects.create(owner_id="support", dataset_id="secret", scorer="exact", minimum=0.8)
    outside = Caller(api_key(member("manager", "elsewhere")))

    assert outside.get(agent_path("own", "gates")).status_code == 404
    assert "secret" not in json.dumps(outside.get(agent_path("concierge", "gates")).body)
