"""Calls after one that was cancelled while it connected."""

import asyncio
import sys

import pytest

from tests.served import wait_until
from tests.tools_app.acp.conftest import processes
from tools_app.mcp.cached_servers import server_from_row
from tools_app.mcp.calls import call_mcp_tool
from tools_app.mcp.headers import CallerNames
from tools_app.mcp.sessions import session_pool
from tools_app.models import McpServer

pytestmark = pytest.mark.django_db

# Its first process answers nothing.
PROGRAM = """
import json, os, sys, time
is_first = not os.path.exists(sys.argv[1])
open(sys.argv[1], "w").close()
if is_first:
    time.sleep(60)
for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    result = {"content": [{"type": "text", "text": "done"}]}
    if message["method"] == "initialize":
        version, server = message["params"]["protocolVersion"], {"name": "late", "version": "1"}
        result = {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": server}
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
"""


def test_the_next_call_connects_and_its_program_ends_with_the_connection(commands, settings, tmp_path):
    mark = str(tmp_path / "started")
    settings.MCP_COMMANDS["bare"]["argv"] = [sys.executable, "-c", PROGRAM, mark]
    server = server_from_row(McpServer(key="late", title="Late", transport="stdio", command_key="bare"))

    async def call():
        return await call_mcp_tool(server, "echo", {}, CallerNames())

    async def run():
        first = asyncio.ensure_future(call())
        async with asyncio.timeout(60):
            while not (tmp_path / "started").exists():
                await asyncio.sleep(0.02)
        first.cancel()
        await asyncio.wait([first])
        results, count = [await call(), await call()], len(processes(mark))
        await session_pool().close_all()
        return results, count

    results, count = asyncio.run(asyncio.wait_for(run(), 120))

    assert results == ["done", "done"]
    assert count > 0
    wait_until(lambda: not processes(mark), 10, "the end of the programs")
