"""Connections to models: each address is checked at the moment of the connection.

It imports the HTTP client, which is heavy: import this module where an agent is built, never at start-up.
"""

from __future__ import annotations

import asyncio
import socket
from ipaddress import ip_address
from typing import Any
from weakref import WeakKeyDictionary

import httpcore2
import httpx2

from runs_app.exceptions import RunError
from runs_app.providers.address_policy import Address, is_allowed, refusal


class CheckedBackend(httpcore2.AnyIOBackend):
    """Connects to the address that was checked, not to what the name means a moment later."""

    async def connect_tcp(self, host: str, port: int, *args: Any, **kwargs: Any) -> Any:
        addresses = await resolve(host, port)
        for address in addresses:
            if not is_allowed(address):
                raise RunError(refusal(host, address), "private_address")
        for address in addresses[:-1]:
            try:
                return await super().connect_tcp(str(address), port, *args, **kwargs)
            except (httpcore2.ConnectError, httpcore2.ConnectTimeout):
                continue  # the next one may answer
        return await super().connect_tcp(str(addresses[-1]), port, *args, **kwargs)

    async def connect_unix_socket(self, path: str, *args: Any, **kwargs: Any) -> Any:
        raise RunError("Models behind unix sockets are refused.", "private_address")


async def resolve(host: str, port: int) -> list[Address]:
    """Every address that a host means, each once."""
    try:
        found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except OSError:
        raise httpcore2.ConnectError(f"The host '{host}' is not known.") from None
    return list(dict.fromkeys(ip_address(str(place[0]).partition("%")[0]) for *_, place in found))


class CheckedTransport(httpx2.AsyncBaseTransport):
    """Connections to checked addresses alone, pooled per event loop: a connection belongs to the loop it began in."""

    def __init__(self) -> None:
        self._pools: WeakKeyDictionary[Any, httpx2.AsyncHTTPTransport] = WeakKeyDictionary()

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        loop = asyncio.get_running_loop()
        if loop not in self._pools:
            for closed in [each for each in self._pools if each.is_closed()]:
                del self._pools[closed]
            self._pools[loop] = checked_pool()
        return await self._pools[loop].handle_async_request(request)


def checked_pool() -> httpx2.AsyncHTTPTransport:
    transport = httpx2.AsyncHTTPTransport()
    transport._pool = httpcore2.AsyncConnectionPool(
        ssl_context=httpx2.create_ssl_context(),
        max_connections=1000,
        max_keepalive_connections=100,
        keepalive_expiry=30,
        network_backend=CheckedBackend(),
    )
    return transport
