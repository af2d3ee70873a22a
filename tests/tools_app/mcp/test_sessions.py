"""The connections to MCP servers that stay open between calls."""

import asyncio
import dataclasses

import pytest

from tools_app.mcp import sessions
from tools_app.mcp.cached_servers import server_from_row
from tools_app.mcp.calls import call_mcp_tool
from tools_app.mcp.headers import CallerNames
from tools_app.mcp.sessions import session_pool

pytestmark = pytest.mark.django_db
ANN, BOB = CallerNames("ann"), CallerNames("bob")


@pytest.fixture
def server(http_server):
    """Return a server to which each caller has a connection."""
    http_server.set_headers({"X-User": "{{user}}"})
    return dataclasses.replace(server_from_row(http_server), call_timeout=60)


async def until(condition, seconds=60):
    async with asyncio.timeout(seconds):
        while not condition():
            await asyncio.sleep(0.01)


async def add(server, caller):
    return await call_mcp_tool(server, "add", {"a": 1, "b": 1}, caller)


def users():
    return [dict(headers)["X-User"] for *_, headers in session_pool().entries]


def test_the_least_recently_used_connection_closes_where_there_are_too_many(server, monkeypatch):
    monkeypatch.setattr(sessions, "MAX_SESSIONS", 2)

    async def run():
        seen = []
        for name in ("ann", "bob", "ann", "cleo"):
            await add(server, CallerNames(name))
            seen.append(users())
        await session_pool().close_all()
        return seen

    assert asyncio.run(run()) == [["ann"], ["ann", "bob"], ["bob", "ann"], ["ann", "cleo"]]


def test_a_call_waits_while_all_connections_are_in_use(server, monkeypatch):
    monkeypatch.setattr(sessions, "MAX_SESSIONS", 1)

    async def run():
        busy = asyncio.ensure_future(call_mcp_tool(server, "wait", {"seconds": 60}, ANN))
        await until(lambda: any(session.is_open for session in session_pool().entries.values()))
        waiting = asyncio.ensure_future(add(server, BOB))
        await asyncio.wait([waiting], timeout=0.3)
        has_waited, before = not waiting.done(), users()
        busy.cancel()
        result = await waiting
        after = users()
        await session_pool().close_all()
        return has_waited, before, result, after

    assert asyncio.run(asyncio.wait_for(run(), 120)) == (True, ["ann"], 2, ["bob"])


def test_a_team_whose_servers_are_slow_leaves_connections_to_others(server, monkeypatch):
    monkeypatch.setattr(sessions, "MAX_SESSIONS", 3)
    monkeypatch.setattr(sessions, "MAX_SESSIONS_OF_TEAM", 2)
    slow, other = (dataclasses.replace(server, owner_id=owner) for owner in ("support", "legal"))

    async def run():
        calls = [call_mcp_tool(slow, "wait", {"seconds": 60}, CallerNames(name)) for name in ("ann", "bob", "cleo")]
        busy = [asyncio.ensure_future(call) for call in calls]
        await until(lambda: sum(session.is_open for session in session_pool().entries.values()) == 2)
        result, seen = await add(other, CallerNames("dora")), users()
        for call in busy:
            call.cancel()
        await asyncio.wait(busy)
        await session_pool().close_all()
        return result, seen

    assert asyncio.run(asyncio.wait_for(run(), 120)) == (2, ["ann", "bob", "dora"])


def test_an_idle_connection_closes_and_the_next_call_connects_anew(server, monkeypatch):
    monkeypatch.setattr(sessions, "SESSION_IDLE_SECONDS", 0.1)

    async def run():
        results, opened = [], []
        for _ in range(2):
            results.append(await add(server, ANN))
            opened += session_pool().entries.values()
            await until(lambda: not session_pool().entries and not session_pool().tasks)
        return results, [session.is_open for session in opened], opened[0] is opened[1]

    assert asyncio.run(run()) == ([2, 2], [False, False], False)


def test_the_limits_are_those_of_the_documentation():
    limits = (sessions.MAX_SESSIONS, sessions.MAX_SESSIONS_OF_TEAM, sessions.SESSION_IDLE_SECONDS)
    assert limits == (32, 24, 60)
