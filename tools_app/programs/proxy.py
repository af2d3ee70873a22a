"""A proxy through which programs in the sandbox connect to public addresses.

Imports the HTTP client, which is heavy. Import this module only where a program is started.
"""

from __future__ import annotations

import asyncio
import os
import tempfile
from contextlib import suppress
from ipaddress import ip_address
from typing import cast

import httpcore2

from agentcms.outbound.addresses import AddressRefused, is_allowed_address, validate_host_name
from agentcms.outbound.transport import resolve_host

MAX_HEAD = 16 * 1024  # bytes of a request for a connection
CONNECT_TIMEOUT = 10  # seconds
MAX_CONNECTIONS = 64
REFUSED, CONNECTION_FAILED, INVALID = "403 Forbidden", "502 Bad Gateway", "405 Method Not Allowed"
BUSY = "503 Service Unavailable"  # a program may try again, as it would not after INVALID


class AddressProxy:
    """An HTTP proxy on a Unix socket that only knows CONNECT. It checks each address that it connects to."""

    server: asyncio.Server

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self.path = os.path.join(folder, "proxy.sock")
        self.connections: set[asyncio.Task[None]] = set()

    @classmethod
    async def start(cls) -> AddressProxy:
        proxy = cls(tempfile.mkdtemp(prefix="acp-"))
        proxy.server = await asyncio.start_unix_server(proxy.serve, proxy.path, limit=MAX_HEAD)
        return proxy

    async def close(self) -> None:
        self.server.close()
        for task in list(self.connections):
            task.cancel()
        with suppress(OSError):
            os.unlink(self.path)
        with suppress(OSError):
            os.rmdir(self.folder)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection of the program."""
        task = cast("asyncio.Task[None]", asyncio.current_task())
        self.connections.add(task)
        try:
            with suppress(OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, TimeoutError):
                await self.connect(reader, writer)
        finally:
            self.connections.discard(task)
            writer.close()

    async def connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        async with asyncio.timeout(CONNECT_TIMEOUT):
            head = await reader.readuntil(b"\r\n\r\n")
        method, target, *_ = [*head.split(b"\r\n", 1)[0].decode("latin-1").split(" "), "", ""]
        host, _, port = target.rpartition(":")
        if method != "CONNECT" or not port.isdecimal():
            return await send_status(writer, INVALID)
        if len(self.connections) > MAX_CONNECTIONS:
            return await send_status(writer, BUSY)
        try:
            async with asyncio.timeout(CONNECT_TIMEOUT):
                far_reader, far_writer = await open_checked(host.strip("[]"), int(port))
        except AddressRefused:
            return await send_status(writer, REFUSED)
        except (OSError, TimeoutError, httpcore2.ConnectError, OverflowError):
            return await send_status(writer, CONNECTION_FAILED)
        await send_status(writer, "200 Connection established")
        try:
            await asyncio.gather(relay_stream(reader, far_writer), relay_stream(far_reader, writer))
        finally:
            far_writer.close()


async def open_checked(host: str, port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Connect to a host. Raise AddressRefused if one of its addresses may not be reached."""
    try:
        ip_address(host)
    except ValueError:
        validate_host_name(host)
    addresses = await resolve_host(host, port)
    if not all(map(is_allowed_address, addresses)):
        raise AddressRefused("The address is private.", "private_address")
    # Not the name: it may resolve to another address now.
    for address in addresses[:-1]:
        with suppress(OSError):  # try the next address, such as the IPv4 one where there is no IPv6
            return await asyncio.open_connection(str(address), port)
    return await asyncio.open_connection(str(addresses[-1]), port)


async def send_status(writer: asyncio.StreamWriter, status: str) -> None:
    writer.write(f"HTTP/1.1 {status}\r\n\r\n".encode())
    await writer.drain()


async def relay_stream(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(65536):
        writer.write(data)
        await writer.drain()
    if writer.can_write_eof():
        writer.write_eof()
