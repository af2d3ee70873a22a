"""The tool that reads the resources of MCP servers, which agents get only where they name it."""

import threading
from http.server import ThreadingHTTPServer

import pytest

from tests.api_client import Caller
from tests.factories import AgentFactory, UserFactory, api_key, member
from tests.mcp_servers.scripted import Handler
from tests.runs import DEMO
from tests.tools_app.mcp.test_calls import call_all
from tests.tools_app.mcp.test_runs import built
from tools_app.mcp.cached_servers import server_from_row
from tools_app.mcp.definitions import RESOURCE_TOOL, Definition, Listing
from tools_app.mcp.listing import list_and_store, store_listing
from tools_app.mcp.resources import add_resource_tool
from tools_app.models import McpServer

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("name", ["http_server", "library_server"])
def test_it_lists_and_reads_resources(request, name):
    row = request.getfixturevalue(name)
    list_and_store(row)
    row.refresh_from_db()

    listed, text, room, missing, invalid, other = call_all(
        server_from_row(row),
        ("read_resource", {}),
        ("read_resource", {"uri": "office://hours"}),
        ("read_resource", {"uri": "office://rooms/7"}),
        ("read_resource", {"uri": "office://gone"}),
        ("read_resource", {"uri": "no address"}),
        ("add", {"a": 1, "b": 2}),
    )

    assert listed == [
        {
            "uri": "office://hours",
            "name": "Opening hours",
            "description": "Return when the office is open.",
            "mimeType": "text/plain",
        },
        {
            "uriTemplate": "office://rooms/{number}",
            "name": "room",
            "description": "Return who works in a room.",
            "mimeType": "text/plain",
        },
    ]
    assert (text, room) == ("Monday to Friday, nine to five.", "Nobody works in room 7.")
    assert str(missing).startswith(f"The MCP server '{row.title}' reported an error: ")
    assert "'no address' is not the URI of a resource" in str(invalid)
    assert other == 3


class PagesHandler(Handler):
    """A server with a resource on each page of a list that has no end."""

    def outcome(self, message):
        answer = super().outcome(message)
        if message["method"] == "initialize":
            answer["result"]["capabilities"] = {"resources": {}}
        if message["method"] == "resources/list":
            self.server.pages += 1
            resource = {"uri": f"page://{self.server.pages}", "name": "n", "description": self.server.description}
            answer = {"result": {"resources": [resource] * 10, "nextCursor": str(self.server.pages)}}
        return answer


@pytest.mark.parametrize(
    ("length", "pages", "outcome"), [(200_000, 1, "is too large"), (50_000, 3, "is too large"), (1, 100, "page://100")]
)
def test_a_list_of_resources_is_read_as_far_as_it_may_be_long(loopback, length, pages, outcome):
    with ThreadingHTTPServer(("127.0.0.1", 0), PagesHandler) as server:
        server.daemon_threads, server.pages, server.description = True, 0, "x" * length
        threading.Thread(target=server.serve_forever, daemon=True).start()
        row = McpServer(key="office", title="Office", url=f"http://127.0.0.1:{server.server_port}/mcp")
        row.tools = row.accepted = {RESOURCE_TOOL.name: RESOURCE_TOOL.to_json()}

        (result,) = call_all(server_from_row(row), ("read_resource", {}))

        server.shutdown()
    assert outcome in str(result)
    assert server.pages == pages


class InvalidResourceHandler(Handler):
    """A server whose resource is neither a text nor a file, or a file that is not in Base64."""

    def outcome(self, message):
        if message["method"] != "resources/read":
            return super().outcome(message)
        uri = message["params"]["uri"]
        content = {"uri": uri, "blob": "a"} if "file" in uri else {"uri": uri}
        return {"result": {"contents": [content]}}


@pytest.mark.parametrize("uri", ["office://file", "office://hours"])
def test_an_invalid_resource_is_an_error_of_the_server(loopback, uri):
    with ThreadingHTTPServer(("127.0.0.1", 0), InvalidResourceHandler) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        row = McpServer(key="office", title="Office", url=f"http://127.0.0.1:{server.server_port}/mcp")
        row.tools = row.accepted = {RESOURCE_TOOL.name: RESOURCE_TOOL.to_json()}

        (result,) = call_all(server_from_row(row), ("read_resource", {"uri": uri}))

        server.shutdown()
    assert "The MCP server 'Office' sent an invalid answer." in str(result)


def test_an_agent_gets_it_only_where_it_names_it(http_server):
    tools = {"add": Definition("add", "", {"type": "object"})}
    store_listing(http_server.pk, add_resource_tool(Listing(tools, [])))

    every = AgentFactory(model=DEMO, mcp_clients={"office": {}})
    named = AgentFactory(model=DEMO, mcp_clients={"office": {"tools": {"read_resource": {}}}})

    assert list(every.mcp_clients["office"]["tools"]) == ["add"]
    assert list(built(every)[0]) == ["office_add"]
    assert list(built(named)[0]) == ["office_read_resource"]


def test_all_tools_of_a_server_that_has_resources_alone_are_none(http_server):
    store_listing(http_server.pk, add_resource_tool(Listing({}, [])))
    message = "No MCP server with the ID 'office' lists tools."

    every = AgentFactory(model=DEMO, mcp_clients={"office": {}})
    saved = Caller(api_key(UserFactory(is_superuser=True))).get(f"/api/stored/agents/{every.pk}")

    assert every.mcp_clients == {"office": {}}
    assert [warning["message"] for warning in saved.body["warnings"]] == [message]
    assert built(every) == ({}, [message])


def test_a_tool_of_the_server_with_this_name_takes_precedence(http_server):
    own = Definition("read_resource", "Another tool.", {"type": "object"})

    listing = add_resource_tool(Listing({own.name: own}, []))

    assert listing.definitions == {own.name: own}
    assert own.hash != RESOURCE_TOOL.hash


def test_an_editor_reads_a_resource_and_the_routes_of_resources_are_501(http_server):
    list_and_store(http_server)
    editor = Caller(api_key(member("editor", "support")))

    read = editor.post("/api/mcp/office/tools/read_resource/execute", {"data": {"uri": "office://hours"}})

    assert read.body == {"result": "Monday to Friday, nine to five."}
    assert editor.get("/api/mcp/office/resources").status_code == 501
