"""The messages of an ACP agent: one JSON object a line, of a limited length and number.

Imports the ACP library, which is heavy. Import this module only where an agent is prompted.
"""

from __future__ import annotations

import asyncio
import json
import logging
from typing import Any, ClassVar

from acp import RequestError
from acp.client.connection import ClientSideConnection
from pydantic import ValidationError
from pydantic_core import PydanticSerializationError

from agentcms.wire.json_types import JSONObject

log = logging.getLogger(__name__)

MAX_DETAILS_LENGTH = 1000  # characters of an error that the agent gets


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
            if isinstance(message, dict) and is_readable(message):
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


def is_readable(message: JSONObject) -> bool:
    """Return whether the library can read a message. It would stop reading at another one, and prompts would hang.

    An error of another form becomes one without words. Metadata is left out: the library would put its members in
    place of parameters, which it has validated before.
    """
    method, params = message.get("method"), message.get("params")
    if isinstance(params, dict):
        params.pop("_meta", None)
    if method is not None:
        return isinstance(method, str)
    if not isinstance(message.get("error", {}), dict):
        message["error"] = {}
    return isinstance(message.get("id"), int | str)


def leave_out_invalid_messages(connection: ClientSideConnection) -> None:
    """Ignore notifications that do not follow the protocol, such as newer ones, and refuse such requests.

    The library would log each one with its traceback.
    """
    inner = connection._conn
    handle = inner._handler

    async def handle_valid(method: str, params: Any, is_notification: bool) -> Any:
        try:
            return await handle(method, params, is_notification)
        except (ValidationError, PydanticSerializationError, UnicodeError) as error:
            if is_notification:
                return None
            raise RequestError.invalid_params({"details": str(error)[:MAX_DETAILS_LENGTH]}) from None

    inner._handler = handle_valid
