"""ACP agents in the editor: offered as tools and as sub-agents, and marked where they cannot be used."""

import pytest
from django.urls import reverse

from tests.factories import AgentFactory, UserFactory
from tools_app.acp.cached_agents import acp_table
from tools_app.models import AcpAgent

pytestmark = pytest.mark.django_db


@pytest.fixture
def rows(settings):
    settings.ACP_COMMANDS = {"coder": {"argv": ["/usr/bin/true"], "sandbox": "none"}}
    acp_table.invalidate()
    AcpAgent.objects.create(key="coder", title="Coder", description="Writes code.", command_key="coder")
    AcpAgent.objects.create(key="off", title="Resting coder", command_key="coder", is_enabled=False)


@pytest.mark.parametrize("field", ["tools", "agents"])
def test_enabled_agents_are_offered_and_disabled_or_missing_ones_are_marked(client, rows, field):
    agent = AgentFactory(**{field: ["acp-off", "acp-gone"]})
    client.force_login(UserFactory(is_superuser=True))

    offered = client.get(reverse("agents:options", args=[agent.pk, field]), {"q": "coder"}).content.decode()
    page = client.get(reverse("agents:edit", args=[agent.pk])).content.decode()

    assert "acp-coder" in offered
    assert "acp-off" not in offered
    assert "The ACP agent &#x27;Resting coder&#x27; is disabled." in page
    assert "not registered" in page
