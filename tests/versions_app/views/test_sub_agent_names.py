"""The names of stored sub-agents on the pages that show a configuration."""

import pytest
from django.urls import reverse

from tests.factories import AgentFactory

pytestmark = pytest.mark.django_db
NAMED = '<span class="chip chip-plain">Night porter <code>porter</code></span>'


def test_the_page_of_a_version_names_stored_sub_agents(editor):
    AgentFactory(id="porter", name="Night porter")
    agent = AgentFactory(agents=["porter"])

    assert NAMED in editor.get(reverse("versions:view", args=[agent.pk, 1])).content.decode()


def test_a_viewer_reads_their_names_in_place_of_the_editor(viewer):
    AgentFactory(id="porter", name="Night porter")
    agent = AgentFactory(agents=["porter"])

    assert NAMED in viewer.get(reverse("agents:edit", args=[agent.pk])).content.decode()


def test_the_admin_names_stored_sub_agents(admin_client):
    AgentFactory(id="porter", name="Night porter")
    agent = AgentFactory(agents=["porter"])

    page = admin_client.get(reverse("admin:agents_app_agent_change", args=[agent.pk]))

    assert NAMED in page.content.decode()
