"""Where models may listen: never at a private address, unless its network is named in MODEL_NETWORKS."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address
from urllib.parse import urlsplit

from django.conf import settings

from runs_app.exceptions import AgentBuildError

Address = IPv4Address | IPv6Address

NAT64 = IPv6Network("64:ff9b::/96")
METADATA = {IPv4Address("168.63.129.16")}  # of a cloud, at an address that looks public


def check_url(url: str) -> None:
    """Refuse an address that no model may listen at, as far as it says so itself. Raises CannotBuild."""
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError:  # a port or an address that is none
        host = None
    if not host or parts.scheme not in {"http", "https"}:
        raise AgentBuildError("The base URL must begin with http:// or https:// and name a host.", "base_url")
    if parts.username or parts.password:
        raise AgentBuildError("Leave user and password out of the base URL; a key has a field of its own.", "base_url")
    try:
        address = ip_address(host)
    except ValueError:
        return  # a name: what it means is asked at each connection
    if not is_allowed(address):
        raise AgentBuildError(refusal(host, address), "private_address")


def refusal(host: str, address: Address) -> str:
    return f"Models at '{host}' are refused: {address} is private. Name its network in MODEL_NETWORKS to allow it."


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
