"""Connections that several calls share: an error of one call, or an answer that is refused, concerns no other call."""

import asyncio
import json
import threading
from http.server import ThreadingHTTPServer

import pytest

from tests.mcp_servers.hostile import CHOSEN, Handler, serve_over_http
from tools_app.mcp.cached_servers import server_from_row
from tools_app.mcp.calls import call_mcp_tool
from tools_app.mcp.errors import McpError
from tools_app.mcp.headers import CallerNames
from tools_app.mcp.sessions import session_pool
from tools_app.models import McpServer

pytestmark = pytest.mark.django_db
LARGE = "The answer of the MCP server 'Office' is too large. Ask for less data."
INVALID = "The MCP server 'Office' sent an invalid answer. Check that it is an MCP server, and its address."


@pytest.fixture
def hostile(loopback):
    """Return a server whose calls choose how they are answered."""
    server = serve_over_http("127.0.0.1")
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


def call(hostile, *rounds):
    """Make the calls of each round at once, and the rounds one after the other. Return the texts of the results."""
    url = f"http://127.0.0.1:{hostile.server_port}/{CHOSEN}"
    row = McpServer(key="office", title="Office", url=url, connect_timeout=60, call_timeout=60)
    server = server_from_row(row)

    async def attempt(choice):
        try:
            return await call_mcp_tool(server, "echo", choice, CallerNames())
        except McpError as error:
            return str(error)

    async def run():
        results = [await asyncio.gather(*map(attempt, choices)) for choices in rounds]
        await session_pool().close_all()
        return [text for texts in results for text in texts]

    return asyncio.run(asyncio.wait_for(run(), 120))


def test_an_error_that_the_server_reports_leaves_the_connection_open(hostile):
    wrong = [[{"attack": name}] for name in ("no-json", "wrong-result", "no-base64")]

    results = call(hostile, [{"attack": "error-bidi"}], *wrong, [{}, {}], [{}])

    assert results[0] == "The MCP server 'Office' reported an error: a b d"
    assert results[1:] == [INVALID, INVALID, INVALID, "honest", "honest", "honest"]
    assert hostile.methods.count("initialize") == 1


@pytest.mark.parametrize(
    ("choice", "message"),
    [
        ({"status": 429}, "The MCP server 'Office' refused the request (HTTP 429)."),
        ({"status": 401}, "The MCP server 'Office' refused the credentials (HTTP 401). Correct its headers."),
        ({"status": 500}, "The MCP server 'Office' refused the request (HTTP 500)."),
        (
            {"status": 307, "headers": {"Location": "/other"}},
            "The MCP server 'Office' answered with a redirect, which is not followed. Correct its URL.",
        ),
        (
            {"headers": {"Content-Encoding": "gzip"}},
            "The MCP server 'Office' compressed its answer although it was asked not to. Turn off compression there.",
        ),
        ({"attack": "big-line"}, LARGE),
        ({"attack": "endless"}, LARGE),
    ],
)
def test_a_refused_answer_fails_its_own_call_alone(hostile, choice, message):
    slow = {"pause": 1.5}

    results = call(hostile, [{}], [slow, slow, choice, slow], [{}])

    assert results == ["honest", "honest", "honest", message, "honest", "honest"]


@pytest.mark.parametrize("status", [400, 404, 500])
def test_a_server_that_refuses_its_session_gets_a_new_connection(hostile, status):
    results = call(hostile, [{}], [{"status": status}], [{}], [{}])

    assert results[0] == results[2] == results[3] == "honest"
    assert hostile.methods.count("initialize") == 2


FORGED = {"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "critical", "data": "Forged."}}


class RestlessHandler(Handler):
    """A server that ends each stream of events at once, asks for the next one without a pause, and logs in each."""

    def do_POST(self):
        if self.server.is_restless:
            self.rfile.read(int(self.headers["Content-Length"]))
            self.send_events()
        else:
            super().do_POST()

    def do_GET(self):
        self.server.streams += 1
        self.send_events()

    def send_events(self):
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        self.wfile.write(f"id: 1\nretry: 0\ndata: {json.dumps(FORGED)}\n\n".encode())


def test_a_server_that_ends_its_streams_is_asked_for_one_a_second_and_writes_nothing_into_the_log(loopback, caplog):
    with ThreadingHTTPServer(("127.0.0.1", 0), RestlessHandler) as restless:
        restless.daemon_threads, restless.methods = True, []
        restless.is_restless, restless.streams = False, 0
        threading.Thread(target=restless.serve_forever, daemon=True).start()
        row = McpServer(key="office", title="Office", url=f"http://127.0.0.1:{restless.server_port}/{CHOSEN}")
        row.connect_timeout, row.call_timeout = 60, 3

        async def run():
            server = server_from_row(row)
            first = await call_mcp_tool(server, "echo", {}, CallerNames())
            restless.is_restless = True
            with pytest.raises(McpError) as error:
                await call_mcp_tool(server, "echo", {}, CallerNames())
            await session_pool().close_all()
            return first, str(error.value)

        results = asyncio.run(asyncio.wait_for(run(), 120))
        restless.shutdown()

    assert results == ("honest", "The MCP server 'Office' did not answer within 3 seconds.")
    assert 0 < restless.streams < 10
    assert [record for record in caplog.records if "Forged" in record.getMessage()] == []
