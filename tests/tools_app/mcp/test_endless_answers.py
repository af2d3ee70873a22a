"""Answers without an end, in pieces so small that reading them would keep a process busy for minutes."""

import asyncio
import itertools
import json
import threading
import time

import pytest

from tests.mcp_servers.hostile import Handler, Server
from tools_app.mcp.cached_servers import server_from_row
from tools_app.mcp.calls import call_mcp_tool
from tools_app.mcp.errors import McpError
from tools_app.mcp.headers import CallerNames
from tools_app.mcp.sessions import session_pool
from tools_app.models import McpServer

pytestmark = pytest.mark.django_db
LARGE = "The answer of the MCP server 'Office' is too large. Ask for less data."
LATE = "The MCP server 'Office' did not answer within 1 seconds."
HEAD = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
COMMENTS = "1\r\n:\r\n" * 1000  # events, one character in each chunk
HINTS = "HTTP/1.1 103 Early Hints\r\n\r\n" * 10
# The first piece, and the one that is repeated.
PIECES = {
    "chunks": (f"{HEAD}Transfer-Encoding: chunked\r\n\r\n", COMMENTS),
    "hints": ("", HINTS),
    "headers": (HEAD, "X"),
    "comments": (f"{HEAD}\r\n", ":\n"),
}


class EndlessHandler(Handler):
    """A server with sessions, whose calls get pieces as long as somebody reads them. The path names the pieces."""

    def do_POST(self):
        message = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if message["method"] != "tools/call":
            self.answer(message)
            return
        name = self.path.strip("/")
        try:
            first, repeated = PIECES[name]
            for piece in itertools.chain([first], itertools.repeat(repeated)):
                self.connection.sendall(piece.encode())
                time.sleep(0 if name == "chunks" else 0.05)
        except OSError:
            self.server.left.set()

    def answer(self, message):
        content = b""
        if "id" in message:
            version = message["params"].get("protocolVersion")
            facts = {"protocolVersion": version, "capabilities": {}, "serverInfo": {"name": "endless", "version": "1"}}
            content = json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": facts}).encode()
        self.send_response(200 if content else 202)
        self.send_header("Content-Type", "application/json")
        self.send_header("Mcp-Session-Id", "session")
        self.end_headers()
        self.wfile.write(content)

    def do_GET(self):
        self.server.streams += 1
        super().do_GET()


@pytest.fixture
def endless(loopback):
    with Server(("127.0.0.1", 0), EndlessHandler) as server:
        server.streams, server.left = 0, threading.Event()
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


def call(endless, name, seconds):
    """Make a call. Return its error, and whether the server was left before its session was closed."""
    url = f"http://127.0.0.1:{endless.server_port}/{name}"
    row = McpServer(key="office", title="Office", url=url, connect_timeout=seconds, call_timeout=seconds)

    async def run():
        with pytest.raises(McpError) as error:
            await call_mcp_tool(server_from_row(row), "echo", {}, CallerNames())
        is_left = await asyncio.to_thread(endless.left.wait, 10)
        await session_pool().close_all()
        return str(error.value), is_left

    return asyncio.run(asyncio.wait_for(run(), 120))


def test_an_answer_in_countless_chunks_is_too_large(endless):
    assert call(endless, "chunks", 60) == (LARGE, True)


@pytest.mark.parametrize("name", ["hints", "headers", "comments"])
def test_an_answer_that_nobody_waits_for_any_more_is_not_read(endless, name):
    assert call(endless, name, 1) == (LATE, True)


def test_no_stream_is_opened_for_what_a_server_sends_unasked(endless):
    call(endless, "hints", 1)

    assert endless.streams == 0
