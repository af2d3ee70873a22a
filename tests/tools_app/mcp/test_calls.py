"""Calls of tools of real MCP servers, over HTTP and as a program."""

import asyncio
import dataclasses
import resource
import socket
from pathlib import Path

import pytest

from agentcms.observability.metrics import MCP_CALLS
from tools_app.mcp.cached_servers import server_from_row
from tools_app.mcp.calls import call_mcp_tool, tool_error
from tools_app.mcp.errors import McpError, UnknownTool
from tools_app.mcp.headers import CallerNames, mask_headers
from tools_app.mcp.sessions import session_pool
from tools_app.models import McpServer

pytestmark = pytest.mark.django_db


@pytest.fixture(params=["http_server", "program_server"])
def server(request):
    """Return the server of the tests, by each transport."""
    return server_from_row(request.getfixturevalue(request.param))


def call_all(server, *calls, caller=CallerNames()):  # noqa: B008  frozen
    """Call tools at once in one event loop. Return the results, or the errors."""

    async def run():
        results = await asyncio.gather(
            *(call_mcp_tool(server, name, arguments, caller) for name, arguments in calls), return_exceptions=True
        )
        await session_pool().close_all()
        return results

    return asyncio.run(run())


def test_the_end_of_a_long_error_is_not_searched():
    """Otherwise each call of a hostile server would hold up all runs of the process for a second."""
    server = server_from_row(McpServer(key="office", title="Office"))

    near, far = tool_error(server, "Unknown tool" + "x" * 10_000), tool_error(server, "x" * 10_000 + "Unknown tool")

    assert (type(near), type(far)) == (UnknownTool, McpError)


def test_a_result_is_not_compared_with_the_schema_of_a_hostile_server(http_server):
    assert call_all(server_from_row(http_server), ("riddle", {})) == [{"text": "a" * 40 + "!"}]


@pytest.mark.parametrize("name", ["http_server", "library_server"])
def test_a_tool_is_called_fails_and_is_missing(name, request):
    server = server_from_row(request.getfixturevalue(name))

    results = call_all(
        server,
        ("add", {"a": 2, "b": 40}),
        ("fail", {}),
        ("shred", {}),
        ("draw", {"size": 1000}),
        ("draw", {"size": 300_000}),
    )

    assert results[0] == 42
    assert str(results[1]) == f"The MCP server '{server.title}' reported an error: Error executing tool fail"
    assert isinstance(results[2], UnknownTool)
    assert results[3] == "(a file of type image/png, 1,004 bytes, which is not shown)"
    assert str(results[4]) == f"The answer of the MCP server '{server.title}' is too large. Ask for less data."


def test_a_slow_call_times_out_and_leaves_the_connection_to_others(server):
    """The time of the call begins when the connection is there."""
    server = dataclasses.replace(server, call_timeout=1)

    slow, quick = call_all(server, ("wait", {"seconds": 60}), ("add", {"a": 1, "b": 1}))

    assert str(slow) == f"The MCP server '{server.title}' did not answer within 1 seconds."
    assert quick == 2


def test_a_server_that_accepts_connections_and_never_answers_times_out(http_server):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        http_server.url = f"http://127.0.0.1:{silent.getsockname()[1]}/mcp"
        server = dataclasses.replace(server_from_row(http_server), connect_timeout=1)

        (error,) = call_all(server, ("add", {"a": 1, "b": 1}))

    assert str(error) == "The MCP server 'Office' did not answer within 1 seconds."


def test_twenty_calls_at_once_share_one_connection(server):
    async def run():
        calls = (call_mcp_tool(server, "repeat", {"text": str(n), "times": 2}, CallerNames()) for n in range(20))
        results = await asyncio.gather(*calls)
        count = len(session_pool().entries)
        await session_pool().close_all()
        return results, count

    results, count = asyncio.run(run())

    assert results == [str(n) * 2 for n in range(20)]
    assert count == 1


def test_an_answer_that_no_client_should_read_is_refused(server):
    (error,) = call_all(server, ("repeat", {"text": "x" * 1000, "times": 6000}))
    (again,) = call_all(server, ("add", {"a": 1, "b": 2}))

    assert isinstance(error, McpError)
    assert str(error) == f"The answer of the MCP server '{server.title}' is too large. Ask for less data."
    assert again == 3


def test_an_answer_of_more_than_a_megabyte_is_read(server):
    (text,) = call_all(server, ("repeat", {"text": "x" * 1000, "times": 1500}))

    assert len(text) == 1_500_000


def test_a_server_that_is_down_is_named_without_its_address(http_server):
    http_server.url = "http://127.0.0.1:9/mcp"

    (error,) = call_all(server_from_row(http_server), ("add", {"a": 1, "b": 1}))

    assert isinstance(error, McpError)
    assert str(error) == "The MCP server 'Office' cannot be reached."


def test_a_program_that_ends_during_a_call_fails_that_call_alone(program_server):
    server = server_from_row(program_server)

    async def run():
        with pytest.raises(McpError) as error:
            await call_mcp_tool(server, "stop", {}, CallerNames())
        again = await call_mcp_tool(server, "add", {"a": 1, "b": 2}, CallerNames())
        await session_pool().close_all()
        return str(error.value), again

    message, again = asyncio.run(run())

    assert message == "The program of the MCP server 'Printer' could not be started, or it ended."
    assert again == 3


def test_a_program_whose_tool_hangs_is_ended_and_the_next_call_starts_another_one(program_server, monkeypatch):
    monkeypatch.setattr("tools_app.mcp.sessions.PING_SECONDS", 0.5)
    program_server.command_key = "bare"
    server = dataclasses.replace(server_from_row(program_server), call_timeout=2)

    async def run():
        frozen = await call_mcp_tool(server, "process", {}, CallerNames())
        with pytest.raises(McpError):
            await call_mcp_tool(server, "freeze", {}, CallerNames())
        async with asyncio.timeout(20):
            while is_running(frozen):
                await asyncio.sleep(0.01)
        result = await call_mcp_tool(server, "add", {"a": 1, "b": 2}, CallerNames())
        await session_pool().close_all()
        return result

    assert asyncio.run(run()) == 3


@pytest.mark.parametrize("command", ["boxed", "bare"])
def test_a_program_has_limits_and_ends_with_its_connection(program_server, command):
    """Without a sandbox, the process that it left behind would go on."""
    program_server.command_key = command
    server = server_from_row(program_server)

    async def run():
        limits, child = await asyncio.gather(
            call_mcp_tool(server, "limits", {}, CallerNames()),
            call_mcp_tool(server, "leave_behind", {}, CallerNames()),
        )
        was_running = command == "boxed" or is_running(child)
        await session_pool().close_all()
        return limits, child, was_running

    limits, child, was_running = asyncio.run(run())

    # Without a sandbox the launcher counts the processes: the limit of the system counts all of the user.
    processes = 64 if command == "boxed" else resource.getrlimit(resource.RLIMIT_NPROC)[0]
    assert limits == {"DATA": 2048 * 1024 * 1024, "NPROC": processes, "CPU": 600, "CORE": 0}
    assert was_running
    assert command == "boxed" or not is_running(child)


def is_running(process):
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(") ")[2][0] != "Z"
    except FileNotFoundError:
        return False


@pytest.mark.parametrize("name", ["http_server", "program_server"])
def test_a_cancelled_call_is_cancelled_on_the_server_and_the_connection_stays(request, name):
    server = server_from_row(request.getfixturevalue(name))

    async def run():
        calling = asyncio.create_task(call_mcp_tool(server, "wait", {"seconds": 60}, CallerNames()))
        while not (waiting := await call_mcp_tool(server, "calls", {}, CallerNames()))["waiting"]:
            await asyncio.sleep(0.01)
        calling.cancel()
        await asyncio.wait([calling])
        async with asyncio.timeout(20):
            while (ended := await call_mcp_tool(server, "calls", {}, CallerNames()))["waiting"]:
                await asyncio.sleep(0.01)
        count = len(session_pool().entries)
        await session_pool().close_all()
        return calling.cancelled(), ended["cancelled"] - waiting["cancelled"], count

    assert asyncio.run(run()) == (True, 1, 1)


def test_a_disabled_server_is_not_asked(http_server):
    http_server.is_enabled = False

    (error,) = call_all(server_from_row(http_server), ("add", {"a": 1, "b": 1}))

    assert str(error) == "The MCP server 'Office' is disabled."


def test_headers_name_the_caller_and_each_caller_has_a_connection(http_server):
    http_server.set_headers({"Authorization": "Bearer hush", "X-User": "{{user}} of {{owner}}"})
    server = server_from_row(http_server)

    async def run():
        callers = [CallerNames("ann", "support"), CallerNames("bob", "support"), CallerNames("ann", "support")]
        results = await asyncio.gather(*(call_mcp_tool(server, "headers", {}, caller) for caller in callers))
        count = len(session_pool().entries)
        await session_pool().close_all()
        return results, count

    results, count = asyncio.run(run())

    assert [result["x-user"] for result in results] == ["ann of support", "bob of support", "ann of support"]
    assert {result["authorization"] for result in results} == {"Bearer hush"}
    assert count == 2


@pytest.mark.parametrize("value", ["Bearer hush-hush-hush", "Bearer hush-hush-hush-{{user}}"])
def test_an_error_that_quotes_a_header_is_masked(http_server, value):
    http_server.set_headers({"Authorization": value})

    (error,) = call_all(server_from_row(http_server), ("refuse", {}), caller=CallerNames("ann"))

    assert str(error).startswith("The MCP server 'Office' reported an error: ")
    assert "Not allowed: ••••" in str(error)
    assert "hush" not in str(error)


def test_an_error_that_quotes_a_part_of_a_header_is_masked():
    headers = {"Authorization": 'Token id="shop", token="hush-hush"', "Cookie": "session=hush-again; theme=dark"}

    text = mask_headers("Neither hush-hush nor hush-again is known to shop.", headers)

    assert text == "Neither •••• nor •••• is known to shop."


def test_stored_headers_are_encrypted_and_in_no_version(http_server):
    http_server.set_headers({"Authorization": "Bearer hush"})
    http_server.save()

    row = McpServer.objects.get()
    assert "hush" not in row.encrypted_headers
    assert row.headers == {"Authorization": "Bearer hush"}
    assert "hush" not in str(row.versions.values_list("snapshot"))
    assert row.versions.first().snapshot["headerNames"] == ["Authorization"]


def test_the_metrics_count_calls_by_server_and_outcome(http_server):
    def count(outcome):
        return MCP_CALLS.labels("office", outcome)._value.get()

    before = count("succeeded"), count("failed")

    call_all(server_from_row(http_server), ("add", {"a": 1, "b": 1}), ("fail", {}))

    assert (count("succeeded"), count("failed")) == (before[0] + 1, before[1] + 1)
