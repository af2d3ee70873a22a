"""HTTP transport that checks the address of each connection.

Imports the HTTP client, which is heavy. Import this module only where a request is sent.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Awaitable, Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from functools import cache
from ipaddress import ip_address
from ssl import SSLContext
from threading import Lock
from typing import Any
from weakref import WeakKeyDictionary

import httpcore2
import httpx2

from agentcms.outbound.addresses import Address, AddressRefused, is_allowed_address, private_address_message

log = logging.getLogger(__name__)

# Bytes that are read at once. A hostile server can send 10,000 chunks in the 64 KB of the library, and all other runs
# of the event loop would wait while these are parsed.
httpcore2.AsyncHTTP11Connection.READ_NUM_BYTES = 8 * 1024

ResponseCheck = Callable[[httpx2.Response], Awaitable[httpx2.Response]]


def is_compressed(response: httpx2.Response) -> bool:
    """Return whether a server compressed its answer although it was asked not to: a few MB may expand to gigabytes."""
    return response.headers.get("content-encoding", "identity").strip().lower() not in {"", "identity"}


class CheckedBackend(httpcore2.AnyIOBackend):
    """Network backend that connects to the checked address, because a second lookup may return another one."""

    async def connect_tcp(self, host: str, port: int, *args: Any, **kwargs: Any) -> Any:
        addresses = await resolve_host(host, port)
        # All addresses before the first connection: who controls a name could let the public one fail on purpose.
        for address in addresses:
            if not is_allowed_address(address):
                log.warning("The connection to '%s' was refused: %s is a private address.", host, address)
                raise AddressRefused(private_address_message(host), "private_address")
        for address in addresses[:-1]:
            try:
                return await super().connect_tcp(str(address), port, *args, **kwargs)
            except (httpcore2.ConnectError, httpcore2.ConnectTimeout):
                continue  # try the next address
        return await super().connect_tcp(str(addresses[-1]), port, *args, **kwargs)

    async def connect_unix_socket(self, path: str, *args: object, **kwargs: object) -> Any:
        raise AddressRefused("Connections to Unix sockets are not allowed.", "private_address")


# Not the few threads of the event loop: lookups of a domain whose servers do not answer would occupy them, and all
# runs of the process would wait.
_lookup_pool = ThreadPoolExecutor(64, "lookup")
_lookup_lock = Lock()
_lookups: dict[tuple[str, int], Future[Any]] = {}  # in progress


def look_up(host: str, port: int) -> Future[Any]:
    """Return the lookup of a host, which callers at the same time share."""
    key = (host, port)
    with _lookup_lock:
        if (lookup := _lookups.get(key)) is not None:
            return lookup
        _lookups[key] = lookup = _lookup_pool.submit(socket.getaddrinfo, host, port, type=socket.SOCK_STREAM)
    lookup.add_done_callback(lambda _: _lookups.pop(key, None))
    return lookup


async def result_of(lookup: Future[Any]) -> Any:
    """Wait for a lookup. A caller who gives up, with its event loop or before it, ends it for nobody else."""
    loop = asyncio.get_running_loop()
    is_done = asyncio.Event()

    def wake(_: Future[Any]) -> None:
        with suppress(RuntimeError):  # the event loop has ended
            loop.call_soon_threadsafe(is_done.set)

    lookup.add_done_callback(wake)
    await is_done.wait()
    return lookup.result()


async def resolve_host(host: str, port: int) -> list[Address]:
    """Return the distinct addresses of a host."""
    try:
        results = await result_of(look_up(host, port))
    except (OSError, UnicodeError):
        raise httpcore2.ConnectError(f"The host '{host}' could not be resolved.") from None
    # The text after % is the network interface of a link-local address, which is not part of the address.
    return list(dict.fromkeys(ip_address(str(sockaddr[0]).partition("%")[0]) for *_, sockaddr in results))


class CheckedTransport(httpx2.AsyncBaseTransport):
    """HTTP transport with one connection pool per event loop. A connection only works in its own loop.

    `check_response` returns the response that the caller reads, for example with a limited body, or raises an error.
    """

    def __init__(self, check_response: ResponseCheck | None = None) -> None:
        self._check_response = check_response
        self._lock = Lock()
        self._pools: WeakKeyDictionary[asyncio.AbstractEventLoop, httpx2.AsyncHTTPTransport] = WeakKeyDictionary()

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        request.headers["Accept-Encoding"] = "identity"  # the size of a compressed answer cannot be limited
        response = await self._pool_of(asyncio.get_running_loop()).handle_async_request(request)
        return response if self._check_response is None else await self._check_response(response)

    def _pool_of(self, loop: asyncio.AbstractEventLoop) -> httpx2.AsyncHTTPTransport:
        """Return the pool of a loop. Loops of several threads begin and end at once."""
        with self._lock:
            if (pool := self._pools.get(loop)) is not None:
                return pool
            for closed_loop in [other for other in self._pools if other.is_closed()]:
                del self._pools[closed_loop]
            self._pools[loop] = pool = build_pool()
            return pool


@cache
def ssl_context() -> SSLContext:
    """Return the certificates that are trusted. Reading them takes longer than a request."""
    return httpx2.create_ssl_context()


def build_pool() -> httpx2.AsyncHTTPTransport:
    transport = httpx2.AsyncHTTPTransport(verify=ssl_context())
    # Replaced, because the transport has no argument for the network backend.
    transport._pool = httpcore2.AsyncConnectionPool(
        ssl_context=ssl_context(),
        max_connections=1000,
        max_keepalive_connections=100,
        keepalive_expiry=30,
        network_backend=CheckedBackend(),
    )
    return transport
