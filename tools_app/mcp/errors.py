"""Errors of MCP servers, in sentences without headers and addresses."""

from __future__ import annotations

from collections.abc import Mapping

from agentcms.errors import OutsideError
from agentcms.wire.printable_text import printable
from tools_app.mcp.headers import mask_headers

MAX_REPORTED_LENGTH = 500  # characters of a message of a server
MAX_READ_LENGTH = 10_000  # characters of which those are shown: more than the longest header, which is masked whole
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
MCP_TIMEOUT_MESSAGE = "The MCP server '{title}' did not answer within {seconds} seconds."
UNREACHABLE_MESSAGE = "The MCP server '{title}' cannot be reached."
NOT_FOUND_MESSAGE = (
    "There is no MCP server at the URL of '{title}' (HTTP 404). Correct its path: that of many servers is /mcp."
)
INVALID_MESSAGE = "The MCP server '{title}' sent an invalid answer. Check that it is an MCP server, and its address."
VERSION_MESSAGE = "The MCP server '{title}' uses a version of the protocol that is not supported. Update the server."
PROGRAM_MESSAGE = "The program of the MCP server '{title}' could not be started, or it ended."


class McpError(OutsideError):
    """A failure of an MCP server. The message is for users and models."""


class UnknownTool(McpError):
    """A call of a tool that the server no longer has."""


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
    text = printable(text[:MAX_READ_LENGTH]).strip()
    message = mask_headers(text, headers)[:MAX_REPORTED_LENGTH] or "It gave no reason."
    return McpError(f"The MCP server '{title}' reported an error: {message}")
