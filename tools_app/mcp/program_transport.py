"""The transport to a program on this machine, over its standard input and output: one JSON message a line.

Imports the client library, which is heavy. Import this module only where a server is asked.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any, cast

import anyio
import mcp_types
from anyio.abc import ObjectReceiveStream, ObjectSendStream
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from fastmcp.client.transports.base import ClientTransport, TransportOptions
from mcp import ClientSession
from mcp.shared.message import SessionMessage

from tools_app.mcp.errors import AnswerTooLarge

MAX_LINE = 4 * 1024 * 1024  # bytes of one message
# Seconds in which a program may end after its input was closed, and again after it was terminated.
PROGRAM_END_TIMEOUT = 2.0
POLL_INTERVAL = 0.01  # seconds

Messages = tuple[MemoryObjectReceiveStream[SessionMessage | Exception], MemoryObjectSendStream[SessionMessage]]


# Not the transport of the library, which searches all that it has read for the end of a line again with each part.
class ProgramTransport(ClientTransport):
    """A transport that starts a program for each connection and ends it afterwards, with all that it started."""

    legacy_only = True  # the newer protocol without a handshake is spoken over HTTP

    def __init__(self, argv: Sequence[str], environment: dict[str, str], limit: float) -> None:
        self._argv = argv
        self._environment = environment
        self.remaining = limit  # bytes of all messages
        self.refusal: Exception | None = None

    @asynccontextmanager
    async def connect_session(
        self, *, transport_options: TransportOptions | None = None, **options: Any
    ) -> AsyncGenerator[ClientSession, None]:
        session_class = (transport_options or TransportOptions()).session_class
        process = await asyncio.create_subprocess_exec(
            *self._argv,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=None if sys.flags.dev_mode else asyncio.subprocess.DEVNULL,  # it may quote what agents sent
            env=self._environment,
            # A group of processes, which `end_program` kills with all that the program has started.
            start_new_session=True,
            # Of a line, which asyncio limits to 64 KB by default.
            limit=MAX_LINE,
        )
        try:
            async with self.messages(process) as (received, sent), session_class(received, sent, **options) as session:
                yield session
        finally:
            # Also if the caller is cancelled, or the program would go on.
            with anyio.CancelScope(shield=True):
                await end_program(process)

    @asynccontextmanager
    async def messages(self, process: asyncio.subprocess.Process) -> AsyncGenerator[Messages, None]:
        """Yield the streams of the messages that the program sends, and of those that it gets."""
        # Without a buffer: a program that sends faster than the session reads has to wait.
        to_session, received = anyio.create_memory_object_stream[SessionMessage | Exception](0)
        sent, from_session = anyio.create_memory_object_stream[SessionMessage](0)
        async with received, sent, anyio.create_task_group() as tasks:
            tasks.start_soon(self.read, cast("asyncio.StreamReader", process.stdout), to_session)
            tasks.start_soon(self.write, cast("asyncio.StreamWriter", process.stdin), from_session, to_session)
            try:
                yield received, sent
            finally:
                tasks.cancel_scope.cancel()

    async def read(self, output: asyncio.StreamReader, messages: ObjectSendStream[SessionMessage | Exception]) -> None:
        """Pass the lines of the program on. The stream ends with the program, and at a line that is too long."""
        async with messages:
            with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError, asyncio.IncompleteReadError, OSError):
                while True:
                    try:
                        line = await output.readuntil(b"\n")
                        self.remaining -= len(line)
                    except asyncio.LimitOverrunError:
                        self.remaining = -1
                    if self.remaining < 0:
                        self.refusal = AnswerTooLarge()
                        return
                    await messages.send(parse_message(line))

    async def write(
        self,
        program: asyncio.StreamWriter,
        messages: ObjectReceiveStream[SessionMessage],
        answers: ObjectSendStream[SessionMessage | Exception],
    ) -> None:
        """Send the messages of the session. A program that reads no more ends the connection."""
        async with messages:
            try:
                async for message in messages:
                    program.write(message.message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n")
                    await program.drain()
            except OSError:
                await answers.aclose()


def parse_message(line: bytes) -> SessionMessage | Exception:
    try:
        return SessionMessage(mcp_types.jsonrpc_message_adapter.validate_json(line, by_name=False))
    except ValueError as error:
        return error


async def end_program(process: asyncio.subprocess.Process) -> None:
    """End a program with all that it started: close its input, then terminate it, then kill it."""
    cast("asyncio.StreamWriter", process.stdin).close()
    if not await has_ended(process):
        with suppress(ProcessLookupError):
            process.terminate()  # the launcher, or the sandbox, kills the rest
        await has_ended(process)
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    await has_ended(process)
    process._transport.close()  # type: ignore[attr-defined]  # its pipes stay open if output was not read to its end


async def has_ended(process: asyncio.subprocess.Process) -> bool:
    """Return whether a process ends within PROGRAM_END_TIMEOUT."""
    # Not `process.wait()`, which also waits until the output was read.
    with anyio.move_on_after(PROGRAM_END_TIMEOUT):
        while process.returncode is None:
            await anyio.sleep(POLL_INTERVAL)
    return process.returncode is not None
