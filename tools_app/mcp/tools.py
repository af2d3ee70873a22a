"""Tools of pydantic-ai for the tools of MCP servers.

Imports pydantic-ai, which is heavy. Import this module only where an agent is built.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from pydantic_ai import RunContext

from access_app.permissions import SHARED_OWNER
from agentcms.wire.json_types import JSONMapping
from agents_app.registry import Entry
from runs_app.building.tools import AgentTool, outside_tool
from runs_app.engine.context import RunDeps
from runs_app.engine.thread_pools import run_db
from tools_app.mcp.cached_servers import Server, server_table
from tools_app.mcp.calls import call_mcp_tool
from tools_app.mcp.connection import reject_unavailable
from tools_app.mcp.errors import McpError, UnknownTool
from tools_app.mcp.headers import CallerNames
from tools_app.mcp.listing import enqueue_listing_soon


def mcp_tool(key: str, entry: Entry) -> AgentTool:
    """Build the tool of an entry. It connects to its server when it is called."""
    server_key, name, hints = entry.target
    definition_hash = entry.definition_hash
    check = partial(reject_switched_off, server_key, entry.owner_id)

    async def call(context: RunContext[RunDeps], arguments: JSONMapping) -> Any:
        # Not the server that the agent was built with: it may be switched off, or have other headers by now.
        server = require_own_server(await run_db(server_table.find, server_key), entry.owner_id)
        if name not in server.tools or server.tools[name].hash != definition_hash:
            raise McpError(
                f"The tool '{name}' changed on the MCP server '{server.title}' and has to be accepted first."
            )
        try:
            return await call_mcp_tool(server, name, arguments, header_names_of(context.deps), check)
        except UnknownTool:
            await run_db(enqueue_listing_soon, server_key)
            raise

    return outside_tool(
        entry,
        call,
        at_most_once=not (hints.get("readOnlyHint") or hints.get("idempotentHint")),
        origin={"server": server_key},
    )


def reject_switched_off(server_key: str, owner_id: str) -> None:
    """Raise McpError if the server of a tool was deleted, disabled, or moved to another team."""
    reject_unavailable(require_own_server(server_table.find(server_key), owner_id))


def require_own_server(server: Server | None, owner_id: str) -> Server:
    """Return the server of a tool. Raise McpError if it was deleted, or now is one of another team."""
    if server is None:
        raise McpError("The MCP server of this tool was deleted.")
    if server.owner_id not in (SHARED_OWNER, owner_id):  # another team may also have taken the key since
        raise McpError("The MCP server of this tool belongs to another team now.")
    return server


def header_names_of(deps: RunDeps) -> CallerNames:
    """Return the names that headers may have of a run."""
    return CallerNames("" if deps.user_id is None else str(deps.user_id), deps.owner_id, deps.agent_key)
