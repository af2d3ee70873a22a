"""A new owner of an agent takes it from the agents of other owners that use it: they are named first."""

import pytest
from django.urls import reverse

from access_app.role import Role
from agents_app.models import Agent
from tests.agents_app.admin.test_admin_saving import save
from tests.api_client import Caller, agent_path
from tests.factories import AgentFactory, MembershipFactory, UserFactory, api_key, member
from tests.page_client import browser

pytestmark = pytest.mark.django_db


@pytest.fixture
def agent():
    """Return a shared agent that agents of two teams use."""
    agent = AgentFactory(id="helper", name="Helper")
    AgentFactory(id="desk", name="Front desk", owner_id="support", agents=["helper"])
    AgentFactory(id="editor", name="Chief editor", owner_id="press", agents=["helper"])
    return agent


@pytest.fixture
def person():
    """Return a publisher of the shared space and of one of the teams."""
    person = member(Role.PUBLISHER)
    MembershipFactory(user=person, owner_id="support", role=Role.PUBLISHER)
    return person


def owner_of(agent):
    return Agent.objects.get(pk=agent.pk).owner_id


def test_the_api_names_them(agent, person):
    caller = Caller(api_key(person))

    refused = caller.patch(agent_path("helper"), {"ownerId": "support"})
    assert (refused.status_code, refused.body["code"]) == (409, "in_use")
    assert refused.body["error"] == (
        "Agent helper is a sub-agent of 1 that you may not see. Send force=true to move it anyway."
    )
    assert owner_of(agent) == ""

    assert caller.patch(f"{agent_path('helper')}?force=true", {"ownerId": "support"}).status_code == 200
    assert owner_of(agent) == "support"


def test_a_shared_agent_is_lost_by_nobody(agent, person):
    agent.change_owner("support")

    answer = Caller(api_key(person)).patch(agent_path("helper"), {"ownerId": ""})

    assert (answer.status_code, owner_of(agent)) == (200, "")


def test_the_page_asks_for_a_confirmation(agent, person):
    MembershipFactory(user=person, owner_id="press")
    client, address = browser(person), reverse("agents:change_owner", args=["helper"])

    refused = client.post(address, {"owner_id": "support"})
    html = refused.content.decode()
    assert refused.status_code == 422
    assert "Chief editor" in html
    assert "Front desk" not in html
    assert "Select this to change the team anyway." in html
    assert owner_of(agent) == ""

    assert client.post(address, {"owner_id": "support", "confirmed": "on"}).status_code == 302
    assert owner_of(agent) == "support"


@pytest.mark.parametrize("owner_id", ["\0", "a/b", "x" * 200])
def test_an_invalid_owner_is_an_error_of_its_field(agent, owner_id):
    root = UserFactory(is_superuser=True)

    answer = browser(root).post(reverse("agents:change_owner", args=["helper"]), {"owner_id": owner_id})

    assert answer.status_code == 422
    assert owner_of(agent) == ""


def test_the_admin_asks_for_a_confirmation(client, agent):
    client.force_login(UserFactory(is_staff=True, is_superuser=True))

    refused = save(client, agent, owner_id="support")
    assert "&#x27;editor&#x27; would lose this agent. Select this to change the team." in refused.content.decode()
    assert owner_of(agent) == ""

    assert save(client, agent, owner_id="support", owner_change_confirmed="on").status_code == 302
    assert owner_of(agent) == "support"
