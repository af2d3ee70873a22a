"""Calls of tools that are in progress while their MCP server is moved, disabled or deleted."""

import pytest

from tests.api_client import Caller
from tests.factories import AgentFactory, UserFactory, api_key, member
from tests.runs import DEMO, chunks, start_run, wait_for_end
from tests.served import wait_until
from tests.tools_app.mcp.test_calls import call_all
from tools_app.mcp.cached_servers import server_from_row
from tools_app.mcp.definitions import Definition, Listing
from tools_app.mcp.listing import store_listing

pytestmark = pytest.mark.django_db

CLIENT = "/api/stored/mcp-clients/office"
SECONDS = {"type": "object", "properties": {"seconds": {"type": "number"}}, "required": ["seconds"]}


@pytest.fixture
def root():
    return Caller(api_key(UserFactory(is_superuser=True, is_staff=True)))


@pytest.fixture
def office(http_server):
    http_server.owner_id = "support"
    http_server.save()
    store_listing(http_server.pk, Listing({"wait": Definition("wait", "", SECONDS)}, []))
    http_server.refresh_from_db()
    return http_server


CHANGES = {
    "moved": lambda root: root.patch(CLIENT, {"ownerId": "legal"}),
    "disabled": lambda root: root.patch(CLIENT, {"enabled": False}),
    "deleted": lambda root: root.delete(CLIENT),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_call_in_progress_ends_with_its_result(idle_engine, office, root, change):
    server = server_from_row(office)
    agent, user = AgentFactory(model=DEMO, mcp_clients={"office": {}}, owner_id="support"), member("editor", "support")
    run = start_run(agent, user, 'office_wait {"seconds": 2}')
    wait_until(lambda: call_all(server, ("calls", {}))[0]["waiting"], 60, "the call")

    assert change(root).status_code == 200

    run = wait_for_end(run)
    (result,) = chunks(run, "tool-result")
    assert run.status == run.Status.SUCCEEDED
    assert (result["payload"]["isError"], result["payload"]["result"]) == (False, "Waited 2.0 seconds.")
