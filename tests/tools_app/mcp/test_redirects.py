"""Servers that answer with a redirect: it is not followed, and headers stay with their origin."""

import asyncio
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import httpx2
import pytest

from tools_app.mcp.cached_servers import server_from_row
from tools_app.mcp.calls import connection_error, list_tools
from tools_app.mcp.connection import ServerTransport
from tools_app.mcp.errors import McpError, OtherOrigin
from tools_app.models import McpServer

pytestmark = pytest.mark.django_db


@pytest.fixture
def listener():
    """Start a function that starts a server which answers each request with a status and headers."""
    servers = []

    def start(status, location="", encoding=""):
        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                self.server.requests.append(dict(self.headers))
                self.send_response(status)
                if location:
                    self.send_header("Location", location)
                if encoding:
                    self.send_header("Content-Encoding", encoding)
                self.send_header("Content-Length", "0")
                self.end_headers()

            do_GET = do_DELETE = do_POST

            def log_message(self, *args):
                pass

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        server.requests = []
        threading.Thread(target=server.serve_forever, daemon=True).start()
        servers.append(server)
        return server

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


def refusal(server):
    row = McpServer(key="office", title="Office", url=f"http://127.0.0.1:{server.server_port}/mcp")
    row.set_headers({"Authorization": "Bearer hush"})
    with pytest.raises(McpError) as error:
        asyncio.run(list_tools(server_from_row(row)))
    return str(error.value)


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
@pytest.mark.parametrize("kind", ["elsewhere", "same origin"])
def test_a_redirect_is_not_followed(listener, loopback, status, kind):
    target = listener(200)
    location = f"http://127.0.0.1:{target.server_port}/" if kind == "elsewhere" else "/other"
    server = listener(status, location)

    message = refusal(server)

    assert message == "The MCP server 'Office' answered with a redirect, which is not followed. Correct its URL."
    assert target.requests == []
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (401, "refused the credentials (HTTP 401). Correct its headers."),
        (403, "refused the credentials (HTTP 403). Correct its headers."),
        (405, "sent an invalid answer. Check that it is an MCP server, and its address."),
        (500, "refused the request (HTTP 500)."),
    ],
)
def test_a_refusal_says_its_status(listener, loopback, status, words):
    server = listener(status)

    assert refusal(server) == f"The MCP server 'Office' {words}"
    assert server.requests[0]["Authorization"] == "Bearer hush"


def test_an_address_with_a_wrong_path_says_so(listener, loopback):
    server = listener(404)

    assert refusal(server) == (
        "There is no MCP server at the URL of 'Office' (HTTP 404). Correct its path: that of many servers is /mcp."
    )


def test_a_web_page_is_no_answer_of_a_server(listener, loopback):
    server = listener(200)

    assert refusal(server).startswith("The MCP server 'Office' sent an invalid answer.")


def test_a_compressed_answer_is_refused_before_it_is_unpacked(listener, loopback):
    server = listener(200, encoding="gzip")

    message = refusal(server)

    assert message.startswith("The MCP server 'Office' compressed its answer although it was asked not to.")
    assert server.requests[0]["Accept-Encoding"] == "identity"


class LegacyServer(BaseHTTPRequestHandler):
    """A server of the earlier protocol, which names the address for messages in its first event."""

    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        self.wfile.write(f"event: endpoint\ndata: {self.server.endpoint}\n\n".encode())
        self.wfile.flush()
        self.server.is_over.wait(60)

    def do_POST(self):
        self.server.requests.append(self.path)
        self.send_response(202)
        self.send_header("Content-Length", "0")
        self.end_headers()
        self.server.is_over.set()

    def log_message(self, *args):
        pass


def test_a_server_that_names_an_address_elsewhere_for_messages_gets_no_request_there(listener, loopback):
    target = listener(200)
    with ThreadingHTTPServer(("127.0.0.1", 0), LegacyServer) as server:
        server.daemon_threads = True
        server.requests, server.is_over = [], threading.Event()
        server.endpoint = f"http://127.0.0.1:{target.server_port}/messages"
        threading.Thread(target=server.serve_forever, daemon=True).start()
        row = McpServer(key="office", title="Office", url=f"http://127.0.0.1:{server.server_port}/sse")
        row.connect_timeout = 1

        with pytest.raises(McpError) as elsewhere:
            asyncio.run(list_tools(server_from_row(row)))
        server.endpoint, row.connect_timeout = "/messages", 30
        with pytest.raises(McpError):
            asyncio.run(list_tools(server_from_row(row)))
        server.shutdown()

    assert "Office" in str(elsewhere.value)
    assert target.requests == []
    assert server.requests == ["/messages"]


@pytest.mark.parametrize("origin", ["http://127.0.0.2:{}", "http://localhost:{}", "https://127.0.0.1:{}"])
def test_a_request_to_another_origin_is_not_sent(listener, loopback, origin):
    """The client library follows nothing there either. This holds also where a later release does."""
    server = listener(200)
    transport = ServerTransport(
        f"http://127.0.0.1:{server.server_port}/mcp", {"Authorization": "Bearer hush"}, 1000, 60
    )

    async def send():
        async with httpx2.AsyncClient(transport=transport) as client:
            await client.get(f"{origin.format(server.server_port)}/mcp")

    with pytest.raises(OtherOrigin) as error:
        asyncio.run(send())

    assert "redirect" in str(connection_error(server_from_row(McpServer(title="Office")), error.value))
    assert server.requests == []
