"""Calls of tools of MCP servers, and the listing of their tools.

Imports pydantic-ai, which is heavy. Import this module only where a server is asked.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Mapping
from typing import Any

from django.core.exceptions import ValidationError
from fastmcp.exceptions import ToolError
from pydantic_ai.messages import BinaryContent

from agentcms.tracing.propagation import trace_context_for
from tools_app.mcp.accepted_definitions import Listing, parse_listing
from tools_app.mcp.call_signal import mcp_called
from tools_app.mcp.connection import Toolset, build_toolset, reject_unavailable
from tools_app.mcp.errors import (
    LARGE_MESSAGE,
    TIMEOUT_MESSAGE,
    McpError,
    UnknownTool,
    connection_error,
    reported_error,
)
from tools_app.mcp.headers import CallerNames, fill_headers
from tools_app.mcp.resources import add_resource_tool, has_resources, read_resource, reads_resources
from tools_app.mcp.sessions import session_pool
from tools_app.mcp.table import Server
from tools_app.models import McpServer

MAX_LISTING_BYTES = 16 * 1024 * 1024  # of all pages of a list: a server could send pages without end
MAX_RESULT_BYTES = 256 * 1024  # of the images and files of a result

is_unknown_tool = re.compile(r"unknown tool|tool not found|tool .{0,150} not found", re.IGNORECASE).search


async def call_tool(server: Server, name: str, arguments: Mapping[str, Any], caller: CallerNames) -> Any:
    """Call a tool and return its result as JSON values. Raise McpError, whose message is for users and models."""
    reject_unavailable(server)
    started, outcome = time.monotonic(), "failed"
    toolset: Toolset | None = None
    seconds_allowed = server.connect_timeout
    try:
        async with asyncio.timeout(seconds_allowed) as limit:
            async with session_pool().use(server, fill_headers(server.headers, caller)) as toolset:
                seconds_allowed = server.call_timeout
                limit.reschedule(asyncio.get_running_loop().time() + seconds_allowed)
                value = await send_call(server, toolset, name, arguments)
        outcome = "succeeded"
        return without_files(server, value)
    except TimeoutError:
        outcome = "timed_out"
        raise McpError(TIMEOUT_MESSAGE.format(title=server.title, seconds=seconds_allowed)) from None
    except ToolError as error:
        raise tool_error(server, str(error)) from None
    except (McpError, ValidationError):
        raise
    except Exception as error:  # libraries have errors of many types for a lost connection
        raise error_in_call(server, (toolset and toolset.refusal) or error) from None
    finally:
        seconds = time.monotonic() - started
        mcp_called.send(sender=McpServer, server=server.key, outcome=outcome, seconds=seconds)


async def send_call(server: Server, toolset: Toolset, name: str, arguments: Mapping[str, Any]) -> Any:
    with trace_context_for(server.url):  # the client sends it with each call
        if reads_resources(server.tools.get(name)):
            return await read_resource(server, toolset, arguments)
        return await toolset.direct_call_tool(name, dict(arguments))


def tool_error(server: Server, text: str) -> McpError:
    """Return the error that a tool reported, in the words of its server."""
    if is_unknown_tool(text):
        return UnknownTool(f"The MCP server '{server.title}' does not have this tool any more.")
    return reported_error(server.title, text, server.headers)


def error_in_call(server: Server, error: BaseException) -> McpError:
    is_program = server.transport == McpServer.Transport.STDIO
    if is_unknown_tool(str(error)):
        return tool_error(server, str(error))
    return connection_error(server.title, error, is_program=is_program)


def without_files(server: Server, value: Any) -> Any:
    """Return a result with words in place of images and files. Raise McpError if these are too large."""
    size = 0

    def convert(item: Any) -> Any:
        nonlocal size
        if isinstance(item, BinaryContent):
            size += len(item.data)
            return f"(a file of type {item.media_type}, {len(item.data):,} bytes, which is not shown)"
        if isinstance(item, list):
            return [convert(inner) for inner in item]
        return item

    converted = convert(value)
    if size > MAX_RESULT_BYTES:
        raise McpError(LARGE_MESSAGE.format(title=server.title))
    return converted


async def list_tools(server: Server) -> Listing:
    """Connect to a server and return its tools. Raise McpError."""
    toolset: Toolset | None = None
    try:
        async with asyncio.timeout(server.connect_timeout * 2):
            # Not from the pool: a listing also tests whether a new connection works.
            toolset = build_toolset(server, fill_headers(server.headers, CallerNames()), MAX_LISTING_BYTES)
            async with toolset:
                tools, reads = await toolset.list_tools(), await has_resources(toolset)
    except TimeoutError:
        seconds = server.connect_timeout
        raise McpError(TIMEOUT_MESSAGE.format(title=server.title, seconds=seconds)) from None
    except ValidationError as error:
        raise McpError(" ".join(error.messages)) from None
    except Exception as error:
        raise error_in_call(server, (toolset and toolset.refusal) or error) from None
    listing = parse_listing(tool.model_dump(mode="json", by_alias=True, exclude_none=True) for tool in tools)
    return add_resource_tool(listing) if reads else listing
