"""The MCP server of the demo: its tools, its data, and what it allows."""

import asyncio
from ipaddress import ip_network

import pytest
from django.core.management import call_command

from agents_app.models import Agent
from jobs_app.models import Job
from tests.factories import AgentFactory
from tests.tools_app.mcp.test_calls import call_all
from tools_app.demo.address import HOST, PORT_FILE, URL_VARIABLE, demo_url
from tools_app.mcp.cached_servers import server_from_row
from tools_app.mcp.calls import list_tools
from tools_app.models import McpServer

pytestmark = pytest.mark.django_db


@pytest.fixture
def demo_server(shop_url, settings):
    """Allow connections to the server of the demo, and return its URL."""
    settings.OUTBOUND_NETWORKS = [ip_network(f"{HOST}/32")]
    return shop_url


def test_the_demo_has_a_server_and_an_agent_that_uses_it(demo_server, monkeypatch):
    AgentFactory(id="delivery-planner")
    monkeypatch.setenv(URL_VARIABLE, demo_server)

    call_command("seed_demo_mcp")
    call_command("seed_demo_mcp")  # changes nothing

    row = McpServer.objects.get()
    agent = Agent.objects.get(pk="shop-counter")
    listed = asyncio.run(list_tools(server_from_row(row))).definitions
    assert {name: item.hash for name, item in row.definitions.items()} == {n: i.hash for n, i in listed.items()}
    assert [name for name, item in listed.items() if item.changes_something] == ["reserve"]
    tools = agent.mcp_clients["demo-mcp"]["tools"]
    assert {name: options["hash"] for name, options in tools.items()} == {n: i.hash for n, i in listed.items()}
    assert (row.versions.count(), Job.objects.count()) == (1, 0)

    hours, price, refused, reserved, sold_out, elsewhere = call_all(
        server_from_row(row),
        ("opening_hours", {"day": "Sunday"}),
        ("shipping_price", {"country": "de", "grams": 3500}),
        ("shipping_price", {"country": "XX", "grams": 1}),
        ("reserve", {"article": "floor-lamp", "pieces": 2}),
        ("reserve", {"article": "desk-lamp", "pieces": 11}),
        ("shred", {}),
    )
    assert (hours, price, reserved) == ("closed", "7.90 EUR", "Reserved 2. 1 are left.")
    assert "does not ship to XX" in str(refused)
    assert all(isinstance(error, Exception) for error in (sold_out, elsewhere))


def test_no_other_address_of_this_machine_is_allowed(demo_server):
    row = McpServer(key="other", title="Other", url=demo_server.replace(HOST, "127.0.0.1"))

    (error,) = call_all(server_from_row(row), ("opening_hours", {"day": "Sunday"}))

    assert "private address" in str(error)


def test_another_port_corrects_the_address_of_the_server(db, monkeypatch):
    McpServer.objects.create(key="demo-mcp", title="Shop counter", url=demo_url(1))
    monkeypatch.setenv(URL_VARIABLE, demo_url(2))

    call_command("seed_demo_mcp")

    assert McpServer.objects.get().url == demo_url(2)
    assert Job.objects.get().kind == "list_mcp_tools"


@pytest.mark.parametrize("has_demo_agents", [True, False])
def test_without_the_demo_there_is_no_server(db, monkeypatch, settings, has_demo_agents):
    """The process is not started and its address not allowed if there is no file with its port."""
    AgentFactory(id="delivery-planner" if has_demo_agents else "own")
    (settings.DATA_DIR / PORT_FILE).write_text("8765")
    monkeypatch.setenv(URL_VARIABLE, "" if has_demo_agents else demo_url(8765))

    call_command("seed_demo_mcp")

    assert not McpServer.objects.exists()
    assert not (settings.DATA_DIR / PORT_FILE).exists()
