"""Servers that break the protocol: each ends in an error that says so, in time, and stores nothing invalid."""

import asyncio
import contextlib
import json
import socket
import sys
import threading
import time
from pathlib import Path

import pytest
from mcp import MCPError

from tests import mcp_servers
from tests.api_client import Caller
from tests.factories import AgentFactory, api_key, member
from tests.mcp_servers.hostile import ATTACKS, METHODS, TOOL, serve_over_http
from tests.runs import DEMO, chunks, start_run, wait_for_end
from tools_app.mcp.cached_servers import server_from_row
from tools_app.mcp.calls import call_mcp_tool, connection_error, list_tools
from tools_app.mcp.definitions import Listing, parse_listing
from tools_app.mcp.errors import McpError
from tools_app.mcp.headers import CallerNames
from tools_app.mcp.listing import store_listing
from tools_app.mcp.sessions import session_pool
from tools_app.models import McpServer

pytestmark = pytest.mark.django_db
PROGRAM = Path(mcp_servers.__file__).parent / "hostile.py"
LATE = "The MCP server 'Office' did not answer within 1 seconds."
INVALID = "The MCP server 'Office' sent an invalid answer. Check that it is an MCP server, and its address."
LARGE = "The answer of the MCP server 'Office' is too large. Ask for less data."
# Otherwise a client cannot know which answer belongs to which request.
LATE_ATTACKS = {"other-id", "text-id", "drip", "silent", "pings"}
INVALID_ATTACKS = {"no-json", "empty", "null", "deep", "half", "not-utf8", "wrong-result"}
LARGE_ATTACKS = {"big-line", "endless"}


@pytest.fixture(scope="module")
def hostile_url():
    server = serve_over_http("127.0.0.1")
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def attack_all(names, row_of):
    """List the tools of a server, or call one, for each of the attacks at once. Return what came, or the errors."""

    async def attempt(name):
        server = server_from_row(row_of(name))
        if name.startswith("call-"):
            return await call_mcp_tool(server, "echo", {}, CallerNames())
        return await list_tools(server)

    async def run():
        results = await asyncio.wait_for(asyncio.gather(*map(attempt, names), return_exceptions=True), 120)
        await session_pool().close_all()
        return results

    return dict(zip(names, asyncio.run(run()), strict=True))


@pytest.mark.parametrize("phase", METHODS)
def test_every_invalid_answer_is_an_error_that_says_so(phase, hostile_url, loopback):
    def row_of(name):
        seconds = 1 if name.partition("-")[2] in LATE_ATTACKS else 60
        fields = {"title": "Office", "connect_timeout": seconds, "call_timeout": seconds}
        return McpServer(key=name, url=f"{hostile_url}/{name}", **fields)  # servers of one key share a connection

    results = attack_all([f"{phase}-{name}" for name in ATTACKS], row_of)

    texts = {name.removeprefix(f"{phase}-"): str(result) for name, result in results.items()}
    errors = {name: result for name, result in results.items() if isinstance(result, Exception)}
    assert {type(error) for error in errors.values()} == {McpError}
    assert {texts[name] for name in LARGE_ATTACKS} == {LARGE}
    assert {texts[name] for name in LATE_ATTACKS} == {LATE}
    assert texts["error-huge"].startswith("The MCP server 'Office' reported an error: xxx")
    assert {texts[name] for name in INVALID_ATTACKS} == {INVALID}
    for result in results.values():
        if isinstance(result, Listing):
            row = McpServer.objects.create(key=f"office-{McpServer.objects.count()}", title="Office", url=hostile_url)
            store_listing(row.pk, result)
    assert [name for name, text in texts.items() if "cannot be reached" in text] == []


def test_a_server_of_another_version_of_the_protocol_says_so(hostile_url, loopback):
    def row_of(name):
        return McpServer(key=name, title="Office", url=f"{hostile_url}/{name}", connect_timeout=60, call_timeout=60)

    results = attack_all(["init-other-version"], row_of)

    assert str(results["init-other-version"]) == (
        "The MCP server 'Office' uses a version of the protocol that is not supported. Update the server."
    )


def test_a_server_that_is_too_busy_to_accept_a_connection_is_late(loopback):
    with socket.socket() as listener, contextlib.ExitStack() as waiting:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        for _ in range(4):  # the queue is full then, and further ones wait
            client = waiting.enter_context(socket.socket())
            client.setblocking(False)
            client.connect_ex(listener.getsockname())
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/busy"
        fields = {"title": "Office", "connect_timeout": 1, "call_timeout": 1}

        results = attack_all(["busy", "call-busy"], lambda name: McpServer(key=name, url=url, **fields))

    assert {str(result) for result in results.values()} == {LATE}


def test_a_connection_that_the_library_gives_up_first_is_late():
    server = server_from_row(McpServer(key="office", title="Office", connect_timeout=1))

    error = connection_error(server, MCPError(code=408, message="Timed out while waiting for response."))

    assert str(error) == LATE


def test_a_program_that_breaks_the_protocol_ends_with_its_call(loopback, settings):
    late = ["call-no-json", "call-drip", "init-silent"]
    names = [*late, "call-twice", "call-big-line", "call-endless", "init-error-huge"]
    argv = [sys.executable, str(PROGRAM)]
    settings.MCP_COMMANDS = {name: {"argv": [*argv, name], "sandbox": "none"} for name in names}

    def row_of(name):
        call, connect = (1 if name in late else 60), (1 if name == "init-silent" else 60)
        fields = {"transport": "stdio", "command_key": name, "connect_timeout": connect, "call_timeout": call}
        return McpServer(key=name, title="Office", **fields)

    results = {name: str(result) for name, result in attack_all(names, row_of).items()}

    assert results["call-twice"] == "honest"
    assert {results[name] for name in late} == {LATE}
    assert results["call-big-line"] == results["call-endless"] == LARGE
    assert results["init-error-huge"].startswith("The MCP server 'Office' reported an error: xxx")


def test_a_server_that_floods_us_with_requests_prolongs_no_call(hostile_url, loopback):
    row = McpServer(key="pings", title="Office", url=f"{hostile_url}/call-pings", call_timeout=1)

    async def run():
        started = time.monotonic()
        with pytest.raises(McpError, match=LATE):
            await call_mcp_tool(server_from_row(row), "echo", {}, CallerNames())
        seconds = time.monotonic() - started
        await session_pool().close_all()
        return seconds

    assert asyncio.run(run()) < 5


def reject_constant(name):
    raise AssertionError(f"{name} is not JSON.")


@pytest.mark.parametrize("name", ["nul-text", "not-finite", "huge-number", "structured-nul", "structured-deep"])
def test_the_api_answers_with_valid_json(name, hostile_url, loopback):
    row = McpServer.objects.create(key="office", title="Office", url=f"{hostile_url}/call-{name}")
    store_listing(row.pk, parse_listing([TOOL]))

    answer = Caller(api_key(member("editor"))).post("/api/mcp/office/tools/echo/execute", {"data": {}})

    assert answer.status_code in (200, 424), answer.content
    json.loads(answer.content, parse_constant=reject_constant)


@pytest.mark.parametrize("name", ["nul-text", "not-finite", "is-error", "error-nul", "many-parts"])
def test_a_run_stores_no_invalid_result(name, idle_engine, hostile_url, loopback):
    """PostgreSQL stores neither the character NUL nor numbers that are not finite."""
    fields = {"connect_timeout": 30, "call_timeout": 30}
    row = McpServer.objects.create(key="office", title="Office", url=f"{hostile_url}/call-{name}", **fields)
    store_listing(row.pk, parse_listing([TOOL]))
    agent = AgentFactory(model=DEMO, mcp_clients={"office": {}})

    run = wait_for_end(start_run(agent, member("editor"), "office_echo please"), 60)

    assert run.status == run.Status.SUCCEEDED
    (result,) = chunks(run, "tool-result")
    json.dumps(result, allow_nan=False)
