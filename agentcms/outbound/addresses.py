"""The address policy: connections to private addresses are only allowed in the networks of OUTBOUND_NETWORKS."""

from __future__ import annotations

import re
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address
from urllib.parse import urlsplit

from django.conf import settings
from django.core.exceptions import ValidationError

Address = IPv4Address | IPv6Address

NAT64 = IPv6Network("64:ff9b::/96")
MAX_HOST_LENGTH = 253
MAX_URL_LENGTH = 4000
INVALID_HOST_MESSAGE = (
    "'{host}' is not a host of a URL. Enter a host name, such as models.example.org, or a whole IP address, such "
    "as 192.0.2.1."
)
INVALID_PORT_MESSAGE = (
    "The URL has an invalid port or address. Write a port as a number up to 65535, and an IPv6 address in brackets."
)
is_label = re.compile(r"(?!-)[A-Za-z0-9_-]{1,63}(?<!-)").fullmatch
is_numeric_label = re.compile(r"[0-9]+|0[xX][0-9A-Fa-f]*").fullmatch

# Metadata services of clouds. The first has a public address, the second one that some releases of Python call global.
METADATA_ADDRESSES = {IPv4Address("168.63.129.16"), IPv4Address("192.0.0.192")}


class AddressRefused(ValidationError):
    """A URL that is invalid or names an address that must not be reached. The message contains no secrets."""


def validate_url(url: str) -> None:
    """Raise AddressRefused if a URL is invalid or names a private address.

    Host names are not resolved here but at each connection.
    """
    if len(url) > MAX_URL_LENGTH:  # before it is split: the host is normalized then, which takes quadratic time
        raise AddressRefused(f"The URL is longer than {MAX_URL_LENGTH:,} characters. Enter a shorter one.", "url")
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError:
        raise AddressRefused(INVALID_PORT_MESSAGE, "url") from None
    if not host or parts.scheme not in {"http", "https"}:
        raise AddressRefused("The URL must begin with http:// or https:// and contain a host.", "url")
    if parts.username or parts.password:
        raise AddressRefused("Remove the user name and password from the URL. Use a key or headers.", "url")
    rest = parts.path + parts.query + parts.fragment
    if not rest.isprintable() or " " in rest:  # pages would show another URL than the one that is requested
        raise AddressRefused("The URL has a space or an invisible character. Remove it, or write it as %20.", "url")
    host = ascii_host(url, host)
    try:
        address = ip_address(host)
    except ValueError:
        validate_host_name(host)
        return
    if not is_allowed_address(address):
        raise AddressRefused(private_address_message(host), "private_address")


def ascii_host(url: str, host: str) -> str:
    """Return the host of a URL as the HTTP client sends it. Raise AddressRefused if the client rejects the URL."""
    from httpx2 import URL, InvalidURL  # heavy

    try:
        return URL(url).raw_host.decode()
    except (InvalidURL, UnicodeError):
        raise AddressRefused(INVALID_HOST_MESSAGE.format(host=host), "url") from None


def validate_host_name(host: str) -> None:
    """Raise AddressRefused unless the text is a host name.

    Names that end in a number are other notations of IP addresses: 127.1, 0x7f.1, 2130706433.
    """
    labels = host.removesuffix(".").split(".")
    is_name = len(host) <= MAX_HOST_LENGTH and all(map(is_label, labels))
    if not is_name or is_numeric_label(labels[-1]):
        raise AddressRefused(INVALID_HOST_MESSAGE.format(host=host), "url")


def private_address_message(host: str) -> str:
    """Return the error of a host. It leaves out the address of a name: users must not learn those of the network."""
    return (
        f"'{host}' is not allowed: it is a private address or a name of one. "
        "Add its network to OUTBOUND_NETWORKS to allow it."
    )


def is_allowed_address(address: Address) -> bool:
    """Return True if connections to an address are allowed."""
    address = embedded_ipv4(address)
    if any(address in network for network in settings.OUTBOUND_NETWORKS if network.version == address.version):
        return True
    if isinstance(address, IPv6Address) and address.is_site_local:  # `is_global` does not know fec0::/10
        return False
    # `is_global` is True for multicast addresses.
    return address.is_global and not (address.is_multicast or address.is_reserved or address in METADATA_ADDRESSES)


def embedded_ipv4(address: Address) -> Address:
    """Return the IPv4 address that is embedded in an IPv6 address, or the address itself."""
    if isinstance(address, IPv4Address):
        return address
    if address in NAT64:
        return IPv4Address(int(address) & 0xFFFF_FFFF)
    # Of a Teredo address, the second one is the client; the first is its server.
    embedded = address.ipv4_mapped or address.sixtofour or (address.teredo or (None, None))[1]
    return embedded or address
