"""Reading a request body under a deadline."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from io import RawIOBase
from tempfile import SpooledTemporaryFile
from typing import IO, NoReturn

from granian.rsgi import HTTPProtocol

MEMORY_LIMIT = 1024**2  # bytes of a body before it moves to a temporary file
# Bytes beyond the limit that are read and dropped. Many clients read the response only after they have sent the whole
# body. If the connection is closed before, they report that instead. From unknown senders, fewer are read.
MAX_DROPPED = 1024**3
MAX_DROPPED_UNCHECKED = 32 * 1024**2
PROMPT_SECONDS = 0.2  # a body that takes longer is slow: its sender is checked before the rest is read
# The thread of a request waits so long for its body. That takes less CPU than the way over the event loop.
THREAD_SECONDS, THREAD_POLL_SECONDS = 0.005, 0.0001


class BodyTimeout(Exception):
    """The body did not arrive in time."""


class IncompleteBody(Exception):
    """The connection was closed before the end of the body, or the body is not valid."""


class UnreadBody(RawIOBase):
    """A body that was not read. Django turns the error into an UnreadablePostError."""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: object) -> NoReturn:
        raise OSError("The request body was not read.")


class RequestBody:
    """A body while it is read.

    Args:
        protocol: The connection.
        declared: The value of `Content-Length`, or None.
        limit: The number of bytes that are kept. A larger body is refused.
        timeout: Seconds for the body, to which each `min_rate` received bytes add one.
        min_rate: Bytes per second.
    """

    def __init__(
        self, protocol: HTTPProtocol, declared: int | None, limit: int, timeout: float, min_rate: int
    ) -> None:
        self.chunks = aiter(protocol)
        self.declared = declared
        self.limit = limit
        self.timeout = timeout
        self.min_rate = min_rate
        self.file: IO[bytes] = SpooledTemporaryFile(MEMORY_LIMIT)  # noqa: SIM115  the request closes it
        self.received = 0
        self.is_refused = False
        self.pending: asyncio.Future[bytes] | None = None

    @property
    def is_complete(self) -> bool:
        """True if the declared length was read, or all that is read of a body that is too large."""
        return self.received > self.limit + MAX_DROPPED or self.received == self.declared

    @property
    def is_too_large(self) -> bool:
        return self.received > self.limit

    @property
    def needs_check(self) -> bool:
        """True if so much is dropped that the sender is checked, however fast the body arrives."""
        return self.received > self.limit + MAX_DROPPED_UNCHECKED

    @property
    def length(self) -> int:
        """The number of bytes read, or the declared length if that is more; at least 1 if the body was not read."""
        return max(self.received, self.declared or 0, int(self.is_refused))

    @property
    def stream(self) -> IO[bytes] | UnreadBody:
        """The stream that the application reads."""
        return UnreadBody() if self.is_refused else self.file

    def read_in_thread(self) -> bool:
        """Read what arrives within milliseconds, in the calling thread. Return True if that is the whole body.

        Raise IncompleteBody.
        """
        deadline = time.monotonic() + THREAD_SECONDS
        while not self.is_complete:
            if self.is_too_large:  # the event loop drops the rest
                return False
            pending = self.next_piece()
            while not pending.done():
                if time.monotonic() > deadline:
                    return False
                time.sleep(THREAD_POLL_SECONDS)
            if not self.take_piece(pending):
                break
        self.file.seek(0)
        return True

    async def read(self, may_continue: Callable[[], Awaitable[bool]]) -> None:
        """Read until the body is complete, and rewind the file.

        `may_continue` is asked once about a body that does not arrive at once, or is far too large. If it returns
        False, nothing more is read. Raise BodyTimeout and IncompleteBody.
        """
        loop = asyncio.get_running_loop()
        started_at = loop.time()
        is_checked = False
        while not self.is_complete:
            pending = self.next_piece()
            prompt = started_at + PROMPT_SECONDS
            if not is_checked and (self.needs_check or not await is_done_after(pending, prompt - loop.time())):
                is_checked = True
                if not await may_continue():
                    pending.cancel()
                    self.is_refused = True
                    return
            deadline = started_at + self.timeout + min(self.received, self.limit) / self.min_rate
            if not await is_done_after(pending, deadline - loop.time()):
                pending.cancel()
                if self.is_too_large:
                    break
                raise BodyTimeout
            if not self.take_piece(pending):
                break
            if self.is_too_large:
                await asyncio.sleep(0)  # between pieces that are here already, others get their turn
        self.file.seek(0)

    def next_piece(self) -> asyncio.Future[bytes]:
        """Return the piece that is awaited, as a future."""
        # `read` waits further for the piece that `read_in_thread` asked for. To ask again would skip that piece.
        if self.pending is None:
            self.pending = asyncio.ensure_future(anext(self.chunks))
        return self.pending

    def take_piece(self, piece: asyncio.Future[bytes]) -> bool:
        """Store a piece, up to the limit. Return False at the end of the body. Raise IncompleteBody."""
        self.pending = None
        if not (chunk := piece.result()):
            self.check_end()
            return False
        if not self.is_too_large:
            self.file.write(chunk)
        self.received += len(chunk)
        return True

    def check_end(self) -> None:
        """Raise IncompleteBody if an empty piece was not the end.

        granian passes on an empty piece for the end, for a closed connection, an invalid chunk and trailers. It has no
        further piece only after the end.
        """
        if self.declared is None:
            try:
                asyncio.ensure_future(anext(self.chunks)).cancel()
            except StopAsyncIteration:
                return
        raise IncompleteBody


async def is_done_after(future: asyncio.Future[bytes], seconds: float) -> bool:
    """Wait for the future at most this long; return True if it is done."""
    if not future.done():
        await asyncio.wait([future], timeout=max(seconds, 0))
    return future.done()
