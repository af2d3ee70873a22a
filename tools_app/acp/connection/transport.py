"""The messages of an ACP agent: one JSON object a line, of a limited length and number."""

from __future__ import annotations

import asyncio
import json
import logging
from typing import ClassVar

from agentcms.wire.json_types import JSONObject

log = logging.getLogger(__name__)


class LineTransport:
    """A transport over the pipes of a process. A line that is too long ends it, and so do too many lines.

    It reads no more while several requests of the agent wait for their answers. Otherwise an agent that asks for files
    and never reads them would fill the memory.
    """

    MAX_LINE: ClassVar = 4 * 1024 * 1024  # bytes
    MAX_LINES: ClassVar = 50_000  # of the start, and of each prompt
    MAX_OPEN_REQUESTS: ClassVar = 16

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer
        self.sending = asyncio.Lock()
        self.lines_left = self.MAX_LINES
        self.open_requests = asyncio.Semaphore(self.MAX_OPEN_REQUESTS)

    async def send(self, message: JSONObject) -> None:
        try:
            async with self.sending:
                self.writer.write(json.dumps(message).encode() + b"\n")
                await self.writer.drain()
        finally:
            if "method" not in message:
                self.open_requests.release()

    async def receive(self) -> JSONObject | None:
        """Return the next message, or None at the end. Lines that are not messages are left out."""
        while (line := await self.read_line()) is not None:
            try:
                message = json.loads(line)
            except (ValueError, RecursionError):
                continue
            if isinstance(message, dict):
                if message.get("method") is not None and "id" in message:
                    await self.open_requests.acquire()
                return message
        return None

    async def read_line(self) -> bytes | None:
        """Return the next line, or None at the end or after too many."""
        # A line that has arrived is read without a pause, and an agent that never stops would stop all others.
        await asyncio.sleep(0)
        try:
            line = await self.reader.readuntil(b"\n")
        except asyncio.LimitOverrunError:
            log.warning("An ACP agent sent a line of more than %d bytes.", self.MAX_LINE)
            return None
        except (asyncio.IncompleteReadError, OSError):
            return None
        self.lines_left -= 1
        if self.lines_left >= 0:
            return line
        log.warning("An ACP agent sent more than %d lines.", self.MAX_LINES)
        return None

    async def close(self) -> None:
        self.writer.close()
