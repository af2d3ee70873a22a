"""The networks of addresses, as throttles count them."""

from __future__ import annotations

import ipaddress


def network_of(address: str) -> str:
    """Return the network that counts as one address: for IPv6 a /64, because a subscriber has all of it."""
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return address
    if isinstance(parsed, ipaddress.IPv4Address):
        return address
    # A socket for both families reports an IPv4 client as a mapped address, whose /64 has all of IPv4.
    return str(parsed.ipv4_mapped or ipaddress.ip_network((parsed, 64), strict=False))
