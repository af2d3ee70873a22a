"""MCP servers that move to another team, and the agents that lose their tools."""

import pytest
from django.urls import reverse

from access_app.role import Role
from tests.api_client import Caller
from tests.factories import AgentFactory, MembershipFactory, UserFactory, api_key, member
from tools_app.models import McpServer

pytestmark = pytest.mark.django_db

CLIENTS = "/api/stored/mcp-clients"
CLIENT = f"{CLIENTS}/office"
BODY = {"name": "Office", "servers": {"office": {"type": "http", "url": "https://mcp.example.org/mcp"}}}
TOOLS = {"office": {"tools": {"add": {}}}}


@pytest.fixture
def manager():
    """Return a user who manages two teams, in each of which an agent uses the server."""
    user = member(Role.MANAGER, "support")
    MembershipFactory(user=user, owner_id="legal", role=Role.MANAGER)
    AgentFactory(id="clerk", owner_id="support", mcp_clients=TOOLS)
    AgentFactory(id="desk", owner_id="support", mcp_clients=TOOLS)
    AgentFactory(id="lawyer", owner_id="legal", mcp_clients=TOOLS)
    return user


def warnings(answer):
    assert answer.status_code == 200, answer.body
    return [(warning["field"], warning["message"]) for warning in answer.body.get("warnings", ())]


def test_the_agents_of_the_old_team_are_named(manager):
    caller = Caller(api_key(manager))
    caller.post(CLIENTS, {**BODY, "ownerId": "support"})

    moved = warnings(caller.patch(CLIENT, {"ownerId": "legal"}))
    renamed = warnings(caller.patch(CLIENT, {"name": "Bureau", "ownerId": "legal"}))

    message = "The server moved to another team. These agents run without its tools from now on: 'clerk' and 'desk'."
    assert moved == [("ownerId", message)]
    assert renamed == []


def test_a_server_that_is_shared_is_lost_by_nobody_until_it_belongs_to_a_team():
    AgentFactory(id="clerk", owner_id="support", mcp_clients=TOOLS)
    AgentFactory(id="lawyer", owner_id="legal", mcp_clients=TOOLS)
    superuser = Caller(api_key(UserFactory(is_superuser=True, is_staff=True)))
    superuser.post(CLIENTS, {**BODY, "ownerId": "support"})

    shared = warnings(superuser.patch(CLIENT, {"ownerId": ""}))
    taken = warnings(superuser.patch(CLIENT, {"ownerId": "legal", "typo": 1}))

    assert shared == []
    assert [field for field, _ in taken] == ["typo", "ownerId"]
    assert taken[1][1].endswith("from now on: 'clerk'.")


def test_the_admin_names_them_too(client, manager):
    Caller(api_key(manager)).post(CLIENTS, {**BODY, "ownerId": "support"})
    client.force_login(UserFactory(is_staff=True, is_superuser=True))
    url = reverse("admin:tools_app_mcpserver_change", args=[McpServer.objects.get().pk])
    form = client.get(url).context["adminform"].form
    fields = {name: value for name, value in form.initial.items() if value is not None}

    answer = client.post(url, {**fields, "is_enabled": "on", "owner_id": "legal"}, follow=True)

    assert McpServer.objects.get().owner_id == "legal"
    assert "These agents run without its tools from now on" in answer.text
    assert "clerk" in answer.text
