"""What saving an agent means for its history, whatever the way it is saved."""

import pytest

from tests.factories import AgentFactory

pytestmark = pytest.mark.django_db


def test_creating_an_agent_makes_its_first_version():
    agent = AgentFactory()

    version = agent.versions.get()

    assert (version.version_number, version.change_message) == (1, "Created")
    assert agent.active_version == agent.head_version == version
