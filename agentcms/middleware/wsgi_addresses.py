"""The addresses of clients that connect by IPv4 to a socket for both families, as with HOST=::."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from agentcms.middleware.wsgi_charset import Application, Environ

MAPPED_PREFIX = "::ffff:"  # of an IPv4 address that is written as one of IPv6 (RFC 4291)


def unmap_addresses(application: Application) -> Application:
    """Wrap a WSGI application so that it gets such an address as one of IPv4.

    Otherwise no network of IPv4 in TRUSTED_PROXIES and METRICS_ALLOW would contain it.
    """

    def wrapper(environ: Environ, start_response: Callable[..., Any]) -> Iterable[bytes]:
        address = environ.get("REMOTE_ADDR", "")
        if address.startswith(MAPPED_PREFIX) and "." in address:
            environ["REMOTE_ADDR"] = address.removeprefix(MAPPED_PREFIX)
        return application(environ, start_response)

    return wrapper
