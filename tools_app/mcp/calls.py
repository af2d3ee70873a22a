"""Calls of tools of MCP servers, and the listing of their tools.

Imports pydantic-ai, which is heavy. Import this module only where a server is asked.
"""

from __future__ import annotations

import asyncio
import dataclasses
import re
import time
from collections.abc import Callable, Iterator

import httpx2
from django.core.exceptions import ValidationError
from django.db import DatabaseError
from fastmcp.exceptions import ToolError
from mcp import MCPError
from mcp_types import PARSE_ERROR, REQUEST_TIMEOUT
from pydantic_ai.messages import BinaryContent

from agentcms.errors import ApiError
from agentcms.outbound.addresses import AddressRefused
from agentcms.tracing.propagation import trace_context_for
from agentcms.wire.json_types import JSONMapping
from runs_app.engine.thread_pools import run_db
from tools_app.mcp.cached_servers import Server
from tools_app.mcp.call_signal import mcp_called
from tools_app.mcp.connection import (
    INVALID_ANSWER_ERRORS,
    Toolset,
    build_toolset,
    is_lost_connection,
    reject_unavailable,
    watch_refusals,
)
from tools_app.mcp.definitions import Listing, parse_listing
from tools_app.mcp.errors import (
    COMPRESSED_MESSAGE,
    CREDENTIALS_MESSAGE,
    CREDENTIALS_STATUSES,
    INVALID_MESSAGE,
    LARGE_MESSAGE,
    MAX_READ_LENGTH,
    MCP_TIMEOUT_MESSAGE,
    NOT_FOUND_MESSAGE,
    PRIVATE_ADDRESS_MESSAGE,
    PROGRAM_MESSAGE,
    REDIRECT_MESSAGE,
    REFUSED_MESSAGE,
    UNREACHABLE_MESSAGE,
    VERSION_MESSAGE,
    AnswerCompressed,
    AnswerTooLarge,
    McpError,
    OtherOrigin,
    RedirectRefused,
    RequestRefused,
    UnknownTool,
    reported_error,
)
from tools_app.mcp.headers import CallerNames, fill_headers
from tools_app.mcp.resources import add_resource_tool, has_resources, read_mcp_resource, reads_resources
from tools_app.mcp.sessions import session_pool
from tools_app.models import McpServer

MAX_LISTING_SECONDS = 60  # for the connection and the list: a worker waits for it
MAX_LISTING_BYTES = 16 * 1024 * 1024  # of all pages of a list: a server could send pages without end
MAX_RESULT_BYTES = 256 * 1024  # of the images and files of a result

LATE_CODES = (REQUEST_TIMEOUT, httpx2.codes.REQUEST_TIMEOUT)  # of a request, and of a connection
# What the client library says of a first answer that did not come in time, of a list without end, and of a version of
# the protocol that it does not know. None of them has a type of its own.
LATE, ENDLESS = "Failed to initialize server session", "auto-pagination limit"
OTHER_VERSION = "Unsupported protocol version"
# What the client library says in place of a server that answers with a status of an error, or with a web page.
NOT_FOUND, NO_ANSWER = "Not Found", ("Server returned an error response", "Unexpected content type")

Check = Callable[[], None]  # raises McpError if a tool may no longer be called

find_unknown_tool = re.compile(r"unknown tool|tool not found|tool .{0,150} not found", re.IGNORECASE).search


async def call_mcp_tool(
    server: Server, name: str, arguments: JSONMapping, caller: CallerNames, check: Check | None = None
) -> object:
    """Call a tool and return its result as JSON values. Raise McpError, whose message is for users and models.

    `check` is called when there is a connection, for which this may have waited.
    """
    reject_unavailable(server)
    started, outcome, refusal = time.monotonic(), "failed", watch_refusals()
    server, toolset, seconds_allowed = with_filled_headers(server, caller), None, server.connect_timeout
    try:
        async with asyncio.timeout(seconds_allowed) as limit:
            async with session_pool().use(server, server.headers) as toolset:
                seconds_allowed = server.call_timeout  # from now on, as the connection is open
                limit.reschedule(asyncio.get_running_loop().time() + seconds_allowed)
                value = await send_call(server, toolset, name, arguments, check)
        outcome = "succeeded"
        return without_files(server, value)
    except TimeoutError:
        outcome = "timed_out"
        raise McpError(MCP_TIMEOUT_MESSAGE.format(title=server.title, seconds=seconds_allowed)) from None
    except ToolError as error:
        raise tool_error(server, str(error)) from None
    except (ApiError, DatabaseError, McpError, ValidationError):  # the first two are of `check`
        raise
    except Exception as error:  # libraries have errors of many types for a lost connection
        raise error_in_call(server, refusal.reason or (toolset and toolset.refusal) or error) from None
    finally:
        mcp_called.send(sender=McpServer, server=server.key, outcome=outcome, seconds=time.monotonic() - started)


def with_filled_headers(server: Server, caller: CallerNames) -> Server:
    """Return a server with the headers that are sent for a caller, which no error may quote."""
    return dataclasses.replace(server, headers=fill_headers(server.headers, caller))


async def send_call(
    server: Server, toolset: Toolset, name: str, arguments: JSONMapping, check: Check | None
) -> object:
    if check is not None:
        await run_db(check)
    with trace_context_for(server.url):  # the client sends it with each call
        if reads_resources(server.tools.get(name)):
            return await read_mcp_resource(toolset, arguments)
        return await toolset.direct_call_tool(name, dict(arguments))


def is_unknown_tool(text: str) -> bool:
    """Return whether a server says that it does not have a tool."""
    # Not in the whole of a long text: the search of one of a megabyte would hold up all runs of this process.
    return find_unknown_tool(text[:MAX_READ_LENGTH]) is not None


def tool_error(server: Server, text: str) -> McpError:
    """Return the error that a tool reported, in the words of its server."""
    if is_unknown_tool(text):
        return UnknownTool(f"The MCP server '{server.title}' no longer has this tool.")
    return reported_error(server.title, text, server.headers)


def error_in_call(server: Server, error: BaseException) -> McpError:
    return tool_error(server, str(error)) if is_unknown_tool(str(error)) else connection_error(server, error)


def without_files(server: Server, value: object) -> object:
    """Return a result with words in place of images and files. Raise McpError if these are too large."""
    size = 0

    def convert(item: object) -> object:
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
    server = with_filled_headers(server, CallerNames())
    toolset: Toolset | None = None
    seconds = min(server.connect_timeout, MAX_LISTING_SECONDS // 2)
    try:
        async with asyncio.timeout(seconds * 2):
            # Not from the pool: a listing also tests whether a new connection works.
            toolset = build_toolset(server, server.headers, MAX_LISTING_BYTES)
            async with toolset:
                tools, reads = await toolset.list_tools(), await has_resources(toolset)
    except TimeoutError:
        raise McpError(MCP_TIMEOUT_MESSAGE.format(title=server.title, seconds=seconds)) from None
    except ValidationError as error:
        raise McpError(" ".join(error.messages)) from None
    except Exception as error:
        raise error_in_call(server, (toolset and toolset.refusal) or error) from None
    listing = parse_listing(tool.model_dump(mode="json", by_alias=True, exclude_none=True) for tool in tools)
    return add_resource_tool(listing) if reads else listing


# --- Failed connections


def connection_error(server: Server, error: BaseException) -> McpError:
    """Return the error of a connection or a call that failed, in words."""
    title = server.title
    is_program = server.transport == McpServer.Transport.STDIO
    for inner in causes(error):
        if isinstance(inner, McpError):
            return inner
        if isinstance(inner, AddressRefused):
            return McpError(PRIVATE_ADDRESS_MESSAGE.format(title=title))
        if isinstance(inner, RedirectRefused | OtherOrigin):
            return McpError(REDIRECT_MESSAGE.format(title=title))
        if isinstance(inner, AnswerTooLarge):
            return McpError(LARGE_MESSAGE.format(title=title))
        if isinstance(inner, AnswerCompressed):
            return McpError(COMPRESSED_MESSAGE.format(title=title))
        if isinstance(inner, RequestRefused):
            message = CREDENTIALS_MESSAGE if inner.status in CREDENTIALS_STATUSES else REFUSED_MESSAGE
            return McpError(message.format(title=title, status=inner.status))
    return answer_error(server, error) or McpError(
        (PROGRAM_MESSAGE if is_program else UNREACHABLE_MESSAGE).format(title=title)
    )


def answer_error(server: Server, error: BaseException) -> McpError | None:
    """Return the error of a server that is there but answers late, with an error, or with what is not an answer."""
    for inner in causes(error):
        code = inner.code if isinstance(inner, MCPError) else None
        is_late = isinstance(inner, TimeoutError | httpx2.TimeoutException) or code in LATE_CODES
        if is_late or is_runtime_error(inner, LATE):
            return McpError(MCP_TIMEOUT_MESSAGE.format(title=server.title, seconds=server.connect_timeout))
        if is_runtime_error(inner, ENDLESS):
            return McpError(LARGE_MESSAGE.format(title=server.title))
        if is_runtime_error(inner, OTHER_VERSION):
            return McpError(VERSION_MESSAGE.format(title=server.title))
        if isinstance(inner, INVALID_ANSWER_ERRORS) or code == PARSE_ERROR:
            return McpError(INVALID_MESSAGE.format(title=server.title))
        if isinstance(inner, MCPError) and not is_lost_connection(inner):
            return error_in_words(server, inner)
    return None


def error_in_words(server: Server, error: MCPError) -> McpError:
    """Return the error that a server reported, or why its address seems to be wrong."""
    if error.message == NOT_FOUND:
        return McpError(NOT_FOUND_MESSAGE.format(title=server.title))
    if error.message.startswith(NO_ANSWER):
        return McpError(INVALID_MESSAGE.format(title=server.title))
    return reported_error(server.title, error.message, server.headers)


def is_runtime_error(error: BaseException, words: str) -> bool:
    return isinstance(error, RuntimeError) and words in str(error)


def causes(error: BaseException) -> Iterator[BaseException]:
    """Yield an error with the errors in its group and those that led to it."""
    waiting, seen = [error], set[int]()
    while waiting:
        current = waiting.pop(0)
        if id(current) in seen:
            continue
        seen.add(id(current))
        yield current
        waiting += getattr(current, "exceptions", ())
        waiting += [inner for inner in (current.__cause__, current.__context__) if inner is not None]
