"""Addresses that MCP servers may not have: refused when they are entered, or when they are connected to."""

import asyncio
import socket
from contextlib import closing

import pytest
from django.core.exceptions import ValidationError

from tests.served import free_port
from tools_app.mcp.cached_servers import server_from_row
from tools_app.mcp.calls import list_tools
from tools_app.mcp.errors import McpError
from tools_app.models import McpServer

pytestmark = pytest.mark.django_db

REFUSED = [
    "http://127.0.0.1/mcp",
    "http://127.1/mcp",
    "http://127.255.255.254:8000/mcp",
    "http://2130706433/mcp",
    "http://0x7f000001/mcp",
    "http://0x7f.1/mcp",
    "http://0177.0.0.1/mcp",
    "http://0/mcp",
    "http://0.0.0.0/mcp",
    "http://10.0.0.1/mcp",
    "http://172.16.0.1/mcp",
    "http://172.31.255.255/mcp",
    "http://192.168.1.1/mcp",
    "http://100.64.0.1/mcp",
    "http://169.254.169.254/latest/meta-data/",
    "http://168.63.129.16/metadata",
    "http://192.0.2.1/mcp",
    "http://198.18.0.1/mcp",
    "http://224.0.0.1/mcp",
    "http://240.0.0.1/mcp",
    "http://255.255.255.255/mcp",
    "http://[::1]/mcp",
    "http://[::]/mcp",
    "http://[::ffff:127.0.0.1]/mcp",
    "http://[::ffff:7f00:1]/mcp",
    "http://[64:ff9b::7f00:1]/mcp",
    "http://[2002:7f00:1::]/mcp",
    "http://[fc00::1]/mcp",
    "http://[fe80::1]/mcp",
    "http://[fec0::1]/mcp",
    "http://[ff02::1]/mcp",
    "http://user:secret@mcp.example.org/mcp",
    "http://mcp.example.org/mcp?token=secret",
    "http://mcp.example.org/mcp#part",
    "ftp://mcp.example.org/mcp",
    "file:///etc/passwd",
    "unix:///run/docker.sock",
    "http:///mcp",
    "",
]


@pytest.mark.parametrize("url", REFUSED)
def test_an_address_is_refused_when_it_is_entered(url):
    with pytest.raises(ValidationError) as error:
        McpServer(key="office", title="Office", url=url).full_clean()

    assert set(error.value.message_dict) == {"url"}


@pytest.mark.parametrize("url", [url for url in REFUSED if url.startswith("http://") and "@" not in url][:31])
def test_an_address_is_refused_when_it_is_connected_to(url):
    """The row was stored before, or by somebody who writes to the database."""
    row = McpServer(key="office", title="Office", url=url, connect_timeout=2)
    row.set_headers({"Authorization": "Bearer hush"})

    with pytest.raises(McpError) as error:
        asyncio.run(list_tools(server_from_row(row)))

    assert "hush" not in str(error.value)
    assert "127" not in str(error.value)


def test_a_name_that_leads_inside_is_refused_at_the_connection_and_gets_no_header(monkeypatch):
    """A server of DNS may answer with a public address first, and with a private one at the connection."""
    port = free_port()
    answers = {"mcp.example.org": [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", port))]}
    monkeypatch.setattr(socket, "getaddrinfo", lambda host, *args, **kwargs: answers[host])
    row = McpServer(key="office", title="Office", url=f"http://mcp.example.org:{port}/mcp")
    row.full_clean()
    with closing(socket.create_server(("127.0.0.1", port))) as listener:
        listener.setblocking(False)

        with pytest.raises(McpError) as error:
            asyncio.run(list_tools(server_from_row(row)))

        with pytest.raises(BlockingIOError):
            listener.accept()
    assert "private address" in str(error.value)
    assert "127.0.0.1" not in str(error.value)
