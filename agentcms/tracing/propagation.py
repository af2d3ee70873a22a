"""The trace context that other servers get: only those that the operator names as own ones.

Importing this module loads no part of OpenTelemetry.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings

from agentcms.tracing.spans import current_traceparent, is_tracing, without_trace_context

TRACEPARENT = "traceparent"
DEFAULT_PORTS = {"http": 80, "https": 443}


def is_own_server(url: str) -> bool:
    """Return whether the operator named the host of a URL, with or without its port, in TRACE_OWN_HOSTS."""
    parts = urlsplit(url)
    host, port = parts.hostname or "", parts.port or DEFAULT_PORTS.get(parts.scheme)
    in_url = f"[{host}]" if ":" in host else host  # an IPv6 address
    return bool(host) and not settings.TRACE_OWN_HOSTS.isdisjoint({host, in_url, f"{in_url}:{port}"})


async def add_trace_context(request: Any) -> None:
    """Add the trace context to a request of the HTTP client to an own server, and remove it from any other."""
    request.headers.pop(TRACEPARENT, None)
    if is_tracing() and is_own_server(str(request.url)) and (traceparent := current_traceparent()):
        request.headers[TRACEPARENT] = traceparent


@contextmanager
def trace_context_for(url: str) -> Iterator[None]:
    """Run a block in which libraries send the trace context, but only to an own server."""
    if is_own_server(url):
        yield
        return
    with without_trace_context():
        yield
