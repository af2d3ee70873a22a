"""The URLs of MCP servers."""

from __future__ import annotations

from urllib.parse import urlsplit

from agentcms.outbound.addresses import AddressRefused, validate_url


def validate_server_url(url: str) -> None:
    """Raise AddressRefused for a URL that is invalid, names a private address or has a query."""
    validate_url(url)
    parts = urlsplit(url)
    if parts.query or parts.fragment:  # everybody who may use the server reads the URL
        raise AddressRefused("The URL may have no query and no fragment. Put keys into headers.", "url")
