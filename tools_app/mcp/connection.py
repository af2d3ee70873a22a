"""Clients of MCP servers.

Imports the HTTP client and pydantic-ai, which are heavy. Import this module only where a server is asked.
"""

from __future__ import annotations

import math
from collections.abc import AsyncIterator, Mapping
from functools import cache

import httpx2
from mcp import ClientSession
from mcp_types import CallToolResult
from pydantic_ai.mcp import MCPToolset

from agentcms.outbound.transport import CheckedTransport, is_compressed
from tools_app.mcp.errors import (
    AnswerCompressed,
    AnswerTooLarge,
    McpError,
    OtherOrigin,
    RedirectRefused,
    RequestRefused,
)
from tools_app.mcp.program_transport import ProgramTransport
from tools_app.mcp.table import Server
from tools_app.models import McpServer
from tools_app.programs.commands import MCP_COMMANDS
from tools_app.programs.resource_limits import limited_argv

MAX_ANSWER = 4 * 1024 * 1024  # bytes of one response; the list of all tools is the largest

REFUSAL_STATUSES = {401, 403, 407, 429}
SERVER_ERROR = 500


async def accept_result(session: ClientSession, name: str, result: CallToolResult) -> None:
    """Accept a result without comparing it with the schema of its tool.

    A schema of a hostile server could make that last for ever, and nothing else could run meanwhile.
    """


ClientSession.validate_tool_result = accept_result  # type: ignore[assignment,method-assign]


class Toolset(MCPToolset[None]):
    """A client of a server. Its transport knows why it stopped reading, which the library may hide."""

    server_transport: ServerTransport | ProgramTransport | None = None

    @property
    def refusal(self) -> Exception | None:
        return self.server_transport.refusal if self.server_transport is not None else None


def build_toolset(server: Server, headers: Mapping[str, str], limit: float = math.inf) -> Toolset:
    """Build a client of a server. It connects when it is entered, and reads at most `limit` bytes in all.

    Sampling, elicitation, roots and instructions stay off. Raise ValidationError if the program of the server may not
    be started.
    """
    if server.transport == McpServer.Transport.STDIO:
        program = program_transport(server, limit)
        return new_toolset(server, program, program)
    transport = ServerTransport(server.url, headers, limit)
    client = httpx2.AsyncClient(
        transport=transport,
        timeout=httpx2.Timeout(message_timeout(server), connect=server.connect_timeout),
        trust_env=False,  # no proxy of the environment: it would connect to addresses that nobody checked
    )
    return new_toolset(server, server.url, transport, client)


def new_toolset(
    server: Server,
    target: str | ProgramTransport,
    transport: ServerTransport | ProgramTransport,
    client: httpx2.AsyncClient | None = None,
) -> Toolset:
    """Return a client of a URL or a program, which knows its transport."""
    toolset = Toolset(
        target,
        http_client=client,
        id=server.key,
        tool_error_behavior="error",
        cache_tools=False,
        cache_resources=False,
        init_timeout=server.connect_timeout,
        read_timeout=message_timeout(server),
    )
    toolset.server_transport = transport
    return toolset


def message_timeout(server: Server) -> int:
    """Return the seconds for one message: the first of a connection, or a call, which `call_tool` also limits."""
    return max(server.connect_timeout, server.call_timeout)


def program_transport(server: Server, limit: float) -> ProgramTransport:
    """Return the transport that starts the program of a server. Raise ValidationError if it may not be started."""
    command = MCP_COMMANDS.get(server.command_key)
    command.require_sandbox()
    return ProgramTransport(limited_argv(command), command.environment, limit)


class ServerTransport(httpx2.AsyncBaseTransport):
    """HTTP transport to one origin, which alone receives the headers. It follows no redirect."""

    def __init__(self, url: str, headers: Mapping[str, str], limit: float) -> None:
        self._origin = origin_of(httpx2.URL(url))
        self._headers = headers
        self.remaining = limit  # bytes of all responses
        self.refusal: Exception | None = None

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        if origin_of(request.url) != self._origin:
            raise OtherOrigin
        request.headers.update(self._headers)
        response = await checked_transport().handle_async_request(request)
        if isinstance(response.stream, httpx2.AsyncByteStream):
            response.stream = LimitedStream(response.stream, self)
        return response


def origin_of(url: httpx2.URL) -> tuple[str, str, int | None]:
    return url.scheme, url.host, url.port


@cache
def checked_transport() -> CheckedTransport:
    """Return the connections of all servers. Each address is checked when it is connected to."""
    return CheckedTransport(check_response)


async def check_response(response: httpx2.Response) -> httpx2.Response:
    """Return a response that the client may read. Raise RedirectRefused, RequestRefused and AnswerCompressed.

    The client reads other statuses: 404 is the end of a session, and 405 says that a server sends no events.
    """
    if response.has_redirect_location:
        await response.aclose()
        raise RedirectRefused
    if response.status_code in REFUSAL_STATUSES or response.status_code >= SERVER_ERROR:
        await response.aclose()
        raise RequestRefused(response.status_code)
    if is_compressed(response):
        await response.aclose()
        raise AnswerCompressed
    return response


class LimitedStream(httpx2.AsyncByteStream):
    """The body of a response, up to MAX_ANSWER bytes and what its transport may still read."""

    def __init__(self, stream: httpx2.AsyncByteStream, transport: ServerTransport) -> None:
        self._stream = stream
        self._transport = transport
        self._remaining = MAX_ANSWER

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for part in self._stream:
            self._remaining -= len(part)
            self._transport.remaining -= len(part)
            if min(self._remaining, self._transport.remaining) < 0:
                self._transport.refusal = AnswerTooLarge()
                raise self._transport.refusal
            yield part

    async def aclose(self) -> None:
        await self._stream.aclose()


def reject_unavailable(server: Server) -> None:
    """Raise McpError with the reason if a server cannot be used."""
    if not server.is_available:
        raise McpError(server.reason)
