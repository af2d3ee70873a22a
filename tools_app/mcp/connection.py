"""Clients of MCP servers.

Imports the HTTP client and pydantic-ai, which are heavy. Import this module only where a server is asked.
"""

from __future__ import annotations

import asyncio
import binascii
import logging
import math
import time
from collections.abc import AsyncIterator, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache

import httpx2
from fastmcp.client.logging import LogMessage
from fastmcp.client.transports import StreamableHttpTransport
from mcp import ClientSession, MCPError
from mcp.shared import jsonrpc_dispatcher
from mcp_types import CONNECTION_CLOSED, CallToolResult
from pydantic import ValidationError as PydanticValidationError
from pydantic_ai.mcp import MCPError as ResourceError
from pydantic_ai.mcp import MCPToolset

from agentcms.outbound.transport import CheckedTransport, is_compressed
from tools_app.mcp.cached_servers import Server
from tools_app.mcp.errors import (
    AnswerCompressed,
    AnswerTooLarge,
    McpError,
    OtherOrigin,
    RedirectRefused,
    RequestRefused,
)
from tools_app.mcp.program_transport import ProgramTransport
from tools_app.models import McpServer
from tools_app.programs.commands import MCP_COMMANDS
from tools_app.programs.resource_limits import limited_argv

MAX_ANSWER = 4 * 1024 * 1024  # bytes of one response; the list of all tools is the largest
MIN_PART = 64  # bytes that each part of a response counts for: reading millions of tiny ones would take minutes

REFUSAL_STATUSES = {401, 403, 407, 429}
CLIENT_ERROR, NOT_ALLOWED, SERVER_ERROR = 400, 405, 500
SECONDS_BETWEEN_STREAMS = 1.0  # of events: a server that ends them at once could keep us busy
SESSION_HEADER, EVENT_HEADER = "mcp-session-id", "last-event-id"
# Raised for an answer that is none of the protocol, or whose file is not in Base64.
INVALID_ANSWER_ERRORS = (PydanticValidationError, binascii.Error)
LOST_CONNECTION = ("Connection closed", "SSE stream")  # what the client library says of one


@dataclass
class RefusedAnswer:
    """Why the last answer to a request of one call was not read, or None if it was."""

    reason: Exception | None = None


# The client library sends each request in the context of its call.
current_refusal: ContextVar[RefusedAnswer | None] = ContextVar("current_mcp_refusal", default=None)


def adopt_library_log() -> None:
    """Let the library write to our log. It has a handler of its own, which writes in another form."""
    library_log = logging.getLogger("fastmcp")
    library_log.handlers.clear()
    library_log.propagate = True
    library_log.setLevel(logging.getLogger("mcp").level)


adopt_library_log()


async def ignore_log_message(message: LogMessage) -> None:
    """Leave out what a server wants to be logged: its words would be in our log."""


async def accept_result(session: ClientSession, name: str, result: CallToolResult) -> None:
    """Accept a result without comparing it with the schema of its tool.

    A schema of a hostile server could make that last for ever, and nothing else could run meanwhile.
    """


ClientSession.validate_tool_result = accept_result  # type: ignore[assignment,method-assign]

# A call that ends without an answer tells the server so, and waits until that is sent. A server that keeps us busy
# with requests of its own would prolong each call by the five seconds of the library.
jsonrpc_dispatcher._ABANDON_WRITE_TIMEOUT = 0.5


class Toolset(MCPToolset[None]):
    """A client of a server. Its transport knows why it stopped reading, which the library may hide."""

    server_transport: ServerTransport | ProgramTransport | None = None

    @property
    def refusal(self) -> Exception | None:
        """The reason why the whole connection ended."""
        return self.server_transport.refusal if self.server_transport is not None else None

    @property
    def is_program(self) -> bool:
        return isinstance(self.server_transport, ProgramTransport)

    @property
    def is_session_refused(self) -> bool:
        """True if the server refused a request with the ID of its session, which it may have forgotten."""
        return isinstance(self.server_transport, ServerTransport) and self.server_transport.is_session_refused

    async def connect(self) -> None:
        """Open the connection. From then on, an answer that is refused fails the call that asked for it alone."""
        await self.__aenter__()
        if isinstance(self.server_transport, ServerTransport):
            self.server_transport.is_connected = True


def build_toolset(server: Server, headers: Mapping[str, str], limit: float = math.inf) -> Toolset:
    """Build a client of a server. It connects when it is entered, and reads at most `limit` bytes in all.

    Sampling, elicitation, roots and instructions stay off. Raise ValidationError if the program of the server may not
    be started.
    """
    if server.transport == McpServer.Transport.STDIO:
        program = program_transport(server, limit)
        return new_toolset(server, program, program)
    transport = ServerTransport(server.url, headers, limit, message_timeout(server))
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
        # Raises ToolError, which `call_mcp_tool` puts into words. By default the library asks the model to try again.
        tool_error_behavior="error",
        cache_tools=False,
        cache_resources=False,
        init_timeout=server.connect_timeout,
        read_timeout=message_timeout(server),
        log_handler=ignore_log_message,
    )
    toolset.server_transport = transport
    if isinstance(toolset.client.transport, StreamableHttpTransport):
        toolset.client.transport.max_sse_event_size = None  # `LimitedAnswer` has the limit
    return toolset


def message_timeout(server: Server) -> int:
    """Return the seconds for one message: the first of a connection, or a call, which `call_mcp_tool` also limits."""
    return max(server.connect_timeout, server.call_timeout)


def program_transport(server: Server, limit: float) -> ProgramTransport:
    """Return the transport that starts the program of a server. Raise ValidationError if it may not be started."""
    command = MCP_COMMANDS.get(server.command_key)
    command.require_sandbox()
    return ProgramTransport(limited_argv(command), command.environment, limit)


class ServerTransport(httpx2.AsyncBaseTransport):
    """HTTP transport to one origin, which alone receives the headers. It follows no redirect.

    An error that it raises ends the connection with all calls in it. So once the connection is open, it answers in
    place of the server where it refuses an answer, and keeps the reason for the call.
    """

    def __init__(self, url: str, headers: Mapping[str, str], limit: float, seconds: float) -> None:
        self._origin = origin_of(httpx2.URL(url))
        self._headers = headers
        self._seconds = seconds  # for one response: by then, nobody waits for it any more
        self.remaining = limit  # bytes of all responses
        self.refusal: Exception | None = None
        self.is_connected = False
        self.is_session_refused = False
        self.next_stream = 0.0  # the time of the clock

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        if origin_of(request.url) != self._origin:
            raise OtherOrigin
        request.headers.update(self._headers)
        if request.method == "GET":
            if SESSION_HEADER not in request.headers:  # servers of the earlier protocol send all answers in one stream
                return await self.send(request, math.inf)
            if EVENT_HEADER not in request.headers:
                # A stream of what the server sends unasked. Nothing here needs it, and it could keep us busy.
                return httpx2.Response(NOT_ALLOWED)
            await self.wait_for_stream()
            return await self.send(request, self._seconds)
        note_refusal(None)
        try:
            response = await self.send(request, self._seconds)
        except (RedirectRefused, RequestRefused, AnswerCompressed) as error:
            if not self.is_connected:
                raise
            note_refusal(error)
            response = httpx2.Response(SERVER_ERROR)
        self.is_session_refused |= SESSION_HEADER in request.headers and response.status_code >= CLIENT_ERROR
        return response

    async def send(self, request: httpx2.Request, seconds: float) -> httpx2.Response:
        """Return the response to a request, whose body is limited and may last these seconds.

        Raise ReadTimeout if it does not begin in time.
        """
        deadline = time.monotonic() + seconds
        try:
            # The time limit of the client is one for each part, of which a server may send countless.
            async with asyncio.timeout(self._seconds):
                response = await checked_transport().handle_async_request(request)
        except TimeoutError:
            if not self.is_connected:
                raise httpx2.ReadTimeout("The response is late.", request=request) from None
            return httpx2.Response(SERVER_ERROR)
        if isinstance(response.stream, httpx2.AsyncByteStream):
            response.stream = LimitedAnswer(response.stream, self, deadline)
        return response

    async def wait_for_stream(self) -> None:
        """Wait until another stream of events may be opened."""
        now = time.monotonic()
        seconds, self.next_stream = self.next_stream - now, max(self.next_stream, now) + SECONDS_BETWEEN_STREAMS
        if seconds > 0:
            await asyncio.sleep(seconds)


def watch_refusals() -> RefusedAnswer:
    """Return where the transport keeps why it refuses an answer to the current call."""
    refusal = RefusedAnswer()
    current_refusal.set(refusal)
    return refusal


def note_refusal(reason: Exception | None) -> None:
    """Keep for the current call why an answer to it is not read."""
    if (refusal := current_refusal.get()) is not None:
        refusal.reason = reason


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


class LimitedAnswer(httpx2.AsyncByteStream):
    """The body of a response, up to MAX_ANSWER bytes and what its transport may still read, until a time."""

    def __init__(self, stream: httpx2.AsyncByteStream, transport: ServerTransport, deadline: float) -> None:
        self._stream = stream
        self._transport = transport
        self._deadline = deadline  # of the clock
        self._remaining = MAX_ANSWER

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for part in self._stream:
            length = max(len(part), MIN_PART)
            self._remaining -= length
            self._transport.remaining -= length
            if min(self._remaining, self._transport.remaining) < 0:
                raise self.cut()
            if time.monotonic() > self._deadline:
                raise self.late()
            yield part

    def late(self) -> Exception:
        """Return the error of a response that lasts too long."""
        message = "The response lasts too long."
        return httpx2.StreamError(message) if self._transport.is_connected else httpx2.ReadTimeout(message)

    def cut(self) -> Exception:
        """Return the error with which reading stops."""
        reason = AnswerTooLarge()
        if self._transport.is_connected:
            note_refusal(reason)
            return httpx2.StreamError("The answer is too large.")  # which ends no connection
        self._transport.refusal = reason
        return reason

    async def aclose(self) -> None:
        await self._stream.aclose()


def is_lost_connection(error: MCPError | ResourceError) -> bool:
    """Return whether the client library reports that a connection is lost. Servers send the code for other errors."""
    return error.code == CONNECTION_CLOSED and error.message.startswith(LOST_CONNECTION)


def reject_unavailable(server: Server) -> None:
    """Raise McpError with the reason if a server cannot be used."""
    if not server.is_available:
        raise McpError(server.reason)
