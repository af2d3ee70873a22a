"""Where models may listen: never at a private address, unless its network is named in MODEL_NETWORKS.

It imports the HTTP client, which is heavy: import this module where an agent is built, never at start-up.
"""

from __future__ import annotations

import asyncio
import socket
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address
from typing import Any
from urllib.parse import urlsplit
from weakref import WeakKeyDictionary

import httpcore2
import httpx2
from django.conf import settings

from runs_app.faults import CannotBuild, RunFault

Address = IPv4Address | IPv6Address

NAT64 = IPv6Network("64:ff9b::/96")
METADATA = {IPv4Address("168.63.129.16")}  # of a cloud, at an address that looks public


def check_url(url: str) -> None:
    """Refuse an address that no model may listen at, as far as it says so itself. Raises CannotBuild."""
    parts = urlsplit(url)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise CannotBuild(f"The base URL '{url}' must begin with http:// or https:// and name a host.", "base_url")
    try:
        address = ip_address(parts.hostname)
    except ValueError:
        return  # a name: what it means is asked at each connection
    if not is_allowed(address):
        raise CannotBuild(refusal(parts.hostname), "private_address")


def refusal(host: str) -> str:
    return f"Models at '{host}' are refused: its address is private. Name its network in MODEL_NETWORKS to allow it."


def is_allowed(address: Address) -> bool:
    """Whether a model may listen there."""
    address = unwrapped(address)
    if any(address in network for network in settings.MODEL_NETWORKS if network.version == address.version):
        return True
    return address.is_global and not (address.is_multicast or address.is_reserved or address in METADATA)


def unwrapped(address: Address) -> Address:
    """The IPv4 address that an IPv6 one carries, or itself."""
    if isinstance(address, IPv4Address):
        return address
    if address in NAT64:
        return IPv4Address(int(address) & 0xFFFF_FFFF)
    carried = address.ipv4_mapped or address.sixtofour or (address.teredo or (None, None))[1]
    return carried or address


class CheckedBackend(httpcore2.AnyIOBackend):
    """Connects to the address that was checked, not to what the name means a moment later."""

    async def connect_tcp(self, host: str, port: int, *args: Any, **kwargs: Any) -> Any:
        addresses = await resolve(host, port)
        if not addresses or not all(map(is_allowed, addresses)):
            raise RunFault(refusal(host), "private_address")
        for address in addresses[:-1]:
            try:
                return await super().connect_tcp(str(address), port, *args, **kwargs)
            except (httpcore2.ConnectError, httpcore2.ConnectTimeout):
                continue  # the next one may answer
        return await super().connect_tcp(str(addresses[-1]), port, *args, **kwargs)

    async def connect_unix_socket(self, path: str, *args: Any, **kwargs: Any) -> Any:
        raise RunFault("Models behind unix sockets are refused.", "private_address")


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
