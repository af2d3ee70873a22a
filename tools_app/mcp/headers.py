"""The headers that staff set for an MCP server. Their values are secrets, and may name the caller."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import quote

from django.core.exceptions import ValidationError

from tools_app.programs.environment import MASK

MAX_HEADERS = 20
MAX_HEADER_LENGTH = 8000
NAMED_TWICE_MESSAGE = "A header is named twice. Name each header once."
MIN_MASKED_LENGTH = 8  # characters; shorter words such as "Bearer" are not secrets
# The client writes these itself.
RESERVED_HEADER_NAMES = {
    "accept",
    "accept-encoding",
    "connection",
    "content-length",
    "content-type",
    "host",
    "last-event-id",
    "proxy-authorization",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
}
RESERVED_HEADER_PREFIX = "mcp-"

is_header_name = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}").fullmatch
is_header_value = re.compile(r"[\t -~]*").fullmatch
split_parts = re.compile(r"[\s,;:=\"']+").split  # of a value such as `Token token="…", id=…`
_placeholder = re.compile(r"\{\{(\w+)\}\}")


@dataclass(frozen=True)
class CallerNames:
    """Whom a header may name: the user and the team of a run, and the agent."""

    user: str = ""
    owner: str = ""
    agent: str = ""


PLACEHOLDERS = ("user", "owner", "agent")


def validate_headers(headers: Mapping[str, str]) -> None:
    """Raise ValidationError unless these headers can be sent. The message quotes no value."""
    if len(headers) > MAX_HEADERS:
        raise ValidationError(f"A server has at most {MAX_HEADERS} headers.", "headers")
    names = [name.lower() for name in headers]
    if len(set(names)) < len(names):
        raise ValidationError(NAMED_TWICE_MESSAGE, "headers")
    for name, value in headers.items():
        _validate_header(name, value)


def _validate_header(name: str, value: str) -> None:
    if not is_header_name(name):
        raise ValidationError(f"'{name[:100]}' is not a name of a header. Use one such as Authorization.", "headers")
    if name.lower() in RESERVED_HEADER_NAMES or name.lower().startswith(RESERVED_HEADER_PREFIX):
        raise ValidationError(f"The header {name} is set by the client. Remove it.", "headers")
    if not is_header_value(value) or value != value.strip() or len(value) > MAX_HEADER_LENGTH:
        raise ValidationError(f"The value of the header {name} cannot be sent. Enter it again.", "headers")
    if unknown := {*_placeholder.findall(value)} - {*PLACEHOLDERS}:
        known = ", ".join(f"{{{{{word}}}}}" for word in PLACEHOLDERS)
        message = f"The header {name} has an unknown placeholder '{sorted(unknown)[0]}'. Use {known}."
        raise ValidationError(message, "headers")


def mask_headers(text: str, headers: Mapping[str, str]) -> str:
    """Return a text of a server without the values of the headers that were sent to it, such as a key."""
    values = headers.values()
    words = {word for value in values for word in (value, *value.split(), *split_parts(value))}
    words = {word for word in words if len(word) >= MIN_MASKED_LENGTH}
    # The longest first: a word that is a part of another would break it, and leave its rest readable.
    for word in sorted(words, key=len, reverse=True):
        text = text.replace(word, MASK)
    return text


def fill_headers(headers: Mapping[str, str], caller: CallerNames) -> dict[str, str]:
    """Return the headers with the names of a caller in place of `{{user}}`, `{{owner}}` and `{{agent}}`.

    Characters that a header cannot carry are percent-encoded.
    """

    def fill(match: re.Match[str]) -> str:
        return quote(getattr(caller, match[1]), safe=" !#$&'()*+,-./:;<=>?@[]^_`{|}~")

    return {name: _placeholder.sub(fill, value) for name, value in headers.items()}
