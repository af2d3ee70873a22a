"""References of agents by id instead of key."""

import pytest
from django.urls import reverse

from access_app.role import Role
from agents_app.registry import tool
from tests.factories import AgentFactory, member

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def tower_tool():
    @tool("clock-tower", title="Clock tower", id="tower")
    def strike(times: int) -> str:
        """The hour."""
        return "dong " * times


def test_a_reference_by_id_is_known_and_stays_selected(client):
    agent = AgentFactory(tools=["tower"])
    client.force_login(member(Role.EDITOR))

    page = client.get(reverse("agents:edit", args=[agent.pk])).content.decode()

    assert "<code>tower</code> not registered" not in page
    picker = page[: page.index('id="variants"')]  # which offers every tool
    assert 'value="tower"' in picker
    assert 'value="clock-tower"' not in picker


def test_without_a_reference_the_key_is_offered(client):
    agent = AgentFactory()
    client.force_login(member(Role.EDITOR))

    assert 'value="clock-tower"' in client.get(reverse("agents:edit", args=[agent.pk])).content.decode()
