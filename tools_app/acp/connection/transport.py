"""The messages of an ACP agent: one JSON object a line, of a limited length."""

from __future__ import annotations

import asyncio
import json
import logging
from typing import Any, ClassVar

log = logging.getLogger(__name__)


class LineTransport:
    """A transport over the pipes of a process. A line that is too long ends it."""

    MAX_LINE: ClassVar = 4 * 1024 * 1024  # bytes

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer
        self.sending = asyncio.Lock()

    async def send(self, message: dict[str, Any]) -> None:
        async with self.sending:
            self.writer.write(json.dumps(message).encode() + b"\n")
            await self.writer.drain()

    async def receive(self) -> dict[str, Any] | None:
        """Return the next message, or None at the end. Lines that are no messages are left out."""
        while True:
            try:
                line = await self.reader.readuntil(b"\n")
            except asyncio.LimitOverrunError:
                log.warning("An ACP agent sent a line of more than %d bytes.", self.MAX_LINE)
                return None
            except (asyncio.IncompleteReadError, OSError):
                return None
            try:
                message = json.loads(line)
            except (ValueError, RecursionError):
                continue
            if isinstance(message, dict):
                return message

    async def close(self) -> None:
        self.writer.close()
