"""Fixtures of tests of MCP servers."""

import subprocess
import sys
import time
from ipaddress import ip_network
from pathlib import Path
from urllib.error import HTTPError, URLError
from urllib.request import urlopen

import pytest
from cachetools import TTLCache

from agentcms.cache import SizeLimitedCache
from tests.served import free_port
from tools_app.mcp.cached_servers import server_table
from tools_app.models import McpServer

PROGRAM = Path(__file__).parent.parent / "mcp_servers" / "office.py"  # with the library, which takes a second to load
SMALL_PROGRAM = PROGRAM.with_name("printer.py")


@pytest.fixture(autouse=True)
def cleared_server_cache(monkeypatch):
    """Clear the table of servers, and let it not expire during a test."""
    monkeypatch.setattr(server_table, "_cache", SizeLimitedCache(TTLCache(1, 60)))


@pytest.fixture
def loopback(settings):
    """Allow connections to the servers of the tests."""
    settings.OUTBOUND_NETWORKS = [ip_network("127.0.0.0/8")]


@pytest.fixture(scope="session")
def http_url():
    """Start the server of the tests, and return its URL."""
    port = free_port()
    process = subprocess.Popen(
        [sys.executable, str(PROGRAM), "http", str(port)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    wait_for(f"http://127.0.0.1:{port}/", process)
    yield f"http://127.0.0.1:{port}/mcp"
    process.kill()
    process.wait()


def wait_for(url, process, seconds=60):
    end = time.monotonic() + seconds
    while time.monotonic() < end and process.poll() is None:
        try:
            urlopen(url, timeout=5)
        except HTTPError:
            return
        except URLError:
            time.sleep(0.05)
        else:
            return
    raise AssertionError(f"{url} does not answer.")


@pytest.fixture
def http_server(db, http_url, loopback):
    """Return the row of the server of the tests over HTTP."""
    return McpServer.objects.create(key="office", title="Office", url=http_url)


@pytest.fixture
def commands(settings):
    """Name the programs of the tests: the small one, in the sandbox and without, and the one with the library."""
    argv = [sys.executable, str(SMALL_PROGRAM)]
    settings.MCP_COMMANDS = {
        "boxed": {"argv": argv},
        "bare": {"argv": argv, "sandbox": "none"},
        "library": {"argv": [sys.executable, str(PROGRAM), "stdio"]},
    }


@pytest.fixture
def program_server(db, commands):
    """Return the row of a small program."""
    return program_row("boxed")


@pytest.fixture
def library_server(db, commands):
    """Return the row of the server of the tests as a program."""
    return program_row("library")


def program_row(command):
    return McpServer.objects.create(
        key="printer", title="Printer", transport="stdio", command_key=command, connect_timeout=30
    )
