"""Limits of what is read of a provider's answer.

Imports the HTTP client, which is heavy. Import this module only where an agent is built.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator

import httpx2
from django.conf import settings

from agentcms.outbound.transport import is_compressed
from runs_app.exceptions import RunError

MAX_EVENT_LINES = 100  # of an event stream; the clients take quadratic time for the lines of one event
END_OF_EVENT = re.compile(rb"\r\n\r\n|\n\n|\r\r")
NEWLINES_TO_SPACES = bytes.maketrans(b"\r\n", b"  ")
ERROR_STATUS = 400

COMPRESSED_MESSAGE = "The provider compressed its answer although it was asked not to. Turn off compression there."
INVALID_STREAM_MESSAGE = "The provider sent an invalid stream of events, so the run was stopped."


def too_large() -> RunError:
    megabytes = settings.MODEL_MAX_ANSWER / (1024 * 1024)
    return RunError(
        f"The answer of the provider is larger than {megabytes:g} MB, so the run was stopped.", "too_large"
    )


async def limit_response(response: httpx2.Response) -> httpx2.Response:
    """Return the response with a limited body. Raise RunError if its headers announce one that is too large."""
    error = header_error(response)
    if error is not None:
        await response.aclose()
        raise error
    if isinstance(response.stream, httpx2.AsyncByteStream):
        response.stream = LimitedStream(response.stream, is_answer=response.status_code < ERROR_STATUS)
    return response


def header_error(response: httpx2.Response) -> RunError | None:
    if is_compressed(response):  # 16 MB may expand to gigabytes
        return RunError(COMPRESSED_MESSAGE, "compressed")
    length = response.headers.get("content-length", "")
    return too_large() if length.isdecimal() and int(length[:20]) > settings.MODEL_MAX_ANSWER else None


class LimitedStream(httpx2.AsyncByteStream):
    """The body of a response, in whole lines, up to MODEL_MAX_ANSWER bytes.

    Lines are passed on whole, because clients would copy the beginning of a long line for each further part of it.
    """

    def __init__(self, stream: httpx2.AsyncByteStream, *, is_answer: bool) -> None:
        self.stream = stream
        self.is_answer = is_answer  # an error is read as a whole, and may be a page of HTML
        self.remaining = settings.MODEL_MAX_ANSWER
        self.is_json: bool | None = None  # not known before the first character
        self.line_count = 0  # of the current event
        self.tail = b""

    async def __aiter__(self) -> AsyncIterator[bytes]:
        parts: list[bytes] = []
        async for part in self.stream:
            self.remaining -= len(part)
            if self.remaining < 0:
                raise too_large()
            part = self.check_lines(part) if self.is_answer else part
            parts.append(part)
            if b"\n" in part or b"\r" in part:
                yield b"".join(parts)
                parts.clear()
        if parts:
            yield b"".join(parts)

    async def aclose(self) -> None:
        await self.stream.aclose()

    def check_lines(self, part: bytes) -> bytes:
        """Return a part whose lines a client can read in linear time. Raise RunError if an event has too many."""
        if self.is_json is None and part.strip():
            self.is_json = part.lstrip()[:1] in (b"{", b"[")
        if self.is_json:
            return part.translate(NEWLINES_TO_SPACES)  # outside of texts, which have none, they mean the same
        events = END_OF_EVENT.split(self.tail + part)
        self.line_count -= count_lines(self.tail)
        for position, event in enumerate(events):
            self.line_count = count_lines(event) + (0 if position else self.line_count)
            if self.line_count > MAX_EVENT_LINES:
                raise RunError(INVALID_STREAM_MESSAGE, "invalid_stream")
        self.tail = events[-1][-3:]
        return part


def count_lines(text: bytes) -> int:
    return text.count(b"\n") + text.count(b"\r")
