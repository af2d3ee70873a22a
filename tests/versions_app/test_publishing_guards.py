"""Guards that refuse to publish a version, and what the live history says of a change that bypasses them."""

import pytest

from agents_app.editing.change_context import change
from agents_app.editing.version_refusals import GateNotMet
from tests.factories import AgentFactory
from versions_app import publishing
from versions_app.models import Activation

pytestmark = pytest.mark.django_db


@pytest.fixture
def agent(monkeypatch):
    """Return an agent with one version. A guard refuses every version that would replace it."""
    agent = AgentFactory(instructions="One")
    monkeypatch.setattr(publishing, "guards", [lambda row, version: "Not tested."])
    return agent


def test_a_guard_refuses_another_configuration(agent):
    with pytest.raises(GateNotMet), change(publish=True):
        agent.edit({"instructions": "Two"})

    assert agent.versions.count() == 1


def test_no_guard_refuses_the_configuration_that_is_live(agent):
    restored = agent.active_version.restore()

    agent.refresh_from_db()
    assert agent.active_version == restored


def test_the_live_history_has_the_reason_of_a_bypass_before_the_message_of_the_change(agent):
    with change(publish=True, message="Shorter", bypass_reason="The old one is wrong."):
        agent.edit({"instructions": "Two"})

    assert Activation.objects.first().reason == "Gates bypassed: The old one is wrong."


def test_the_live_history_names_no_bypass_where_no_guard_refused(agent, monkeypatch):
    monkeypatch.setattr(publishing, "guards", [])

    with change(publish=True, bypass_reason="The old one is wrong."):
        agent.edit({"instructions": "Two"})

    assert Activation.objects.first().reason == "The old one is wrong."
