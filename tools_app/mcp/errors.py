"""Errors of MCP servers, in sentences without headers and addresses."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from agentcms.outbound.addresses import AddressRefused
from tools_app.mcp.headers import mask_headers

MAX_REPORTED_LENGTH = 500  # characters of a message of a server
PRIVATE_ADDRESS_MESSAGE = (
    "The MCP server '{title}' has a private address, to which connections are not allowed. "
    "Ask the operator to add its network to OUTBOUND_NETWORKS."
)
REDIRECT_MESSAGE = "The MCP server '{title}' answered with a redirect, which is not followed. Correct its URL."
LARGE_MESSAGE = "The answer of the MCP server '{title}' is too large. Ask for less data."
COMPRESSED_MESSAGE = (
    "The MCP server '{title}' compressed its answer although it was asked not to. Turn off compression there."
)
REFUSED_MESSAGE = "The MCP server '{title}' refused the request (HTTP {status})."
CREDENTIALS_MESSAGE = "The MCP server '{title}' refused the credentials (HTTP {status}). Correct its headers."
CREDENTIALS_STATUSES = (401, 403)
TIMEOUT_MESSAGE = "The MCP server '{title}' did not answer within {seconds} seconds."
UNREACHABLE_MESSAGE = "The MCP server '{title}' cannot be reached."
PROGRAM_MESSAGE = "The program of the MCP server '{title}' could not be started, or it ended."


class McpError(Exception):
    """A failure of an MCP server. The message is for users and models."""


class UnknownTool(McpError):
    """A call of a tool that the server does not have any more."""


class RedirectRefused(Exception):
    """A server answered with a redirect."""


class AnswerTooLarge(Exception):
    """A server sent more than a client reads."""


class AnswerCompressed(Exception):
    """A server compressed its answer, whose size cannot be limited then."""


class RequestRefused(Exception):
    """A server answered with a status that says why it does not answer."""

    def __init__(self, status: int) -> None:
        super().__init__(status)
        self.status = status


class OtherOrigin(Exception):
    """A request was about to leave the origin of its server."""


def reported_error(title: str, text: str, headers: Mapping[str, str]) -> McpError:
    """Return the error that a server reported, in its words, without the headers that it may quote."""
    message = mask_headers(text.strip(), headers)[:MAX_REPORTED_LENGTH] or "It gave no reason."
    return McpError(f"The MCP server '{title}' reported an error: {message}")


def connection_error(title: str, error: BaseException, *, is_program: bool = False) -> McpError:
    """Return the error of a connection or a call that failed, in words."""
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
    return McpError((PROGRAM_MESSAGE if is_program else UNREACHABLE_MESSAGE).format(title=title))


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
