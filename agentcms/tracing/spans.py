"""Spans of this application and their context.

All functions do nothing while tracing is off. Importing this module loads no part of OpenTelemetry.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

from django.conf import settings
from django.utils.crypto import salted_hmac

from agentcms.tracing.requests import open_request_span

if TYPE_CHECKING:
    from opentelemetry.trace import Span

Attributes = Mapping[str, str | int | float | bool]


def is_tracing() -> bool:
    """Return whether spans are exported."""
    return bool(settings.TRACES_ENDPOINT)


@contextmanager
def span(
    name: str,
    attributes: Attributes | None = None,
    *,
    traceparent: str = "",
    link: str = "",
    with_content: bool | None = None,
) -> Iterator[Span | None]:
    """Run a block in a span, and yield the span, or None while tracing is off.

    Its parent is the span of `traceparent`, or else the current one. With `link`, it begins a new trace that refers
    to the span of this traceparent. An error marks the span by its type: its message may quote a prompt.
    `with_content` says whether this span and those inside it may contain texts. By default it is inherited.
    """
    if not is_tracing():
        yield None
        return
    from agentcms.tracing import tracer_provider

    with tracer_provider.open_span(name, attributes or {}, traceparent, link, with_content) as opened:
        yield opened


def current_traceparent() -> str:
    """Return the `traceparent` of the current span, or a blank text without one."""
    if not is_tracing():
        return ""
    from agentcms.tracing import tracer_provider

    open_request_span()
    return tracer_provider.inject_traceparent()


def traceparent_to_store(name: str) -> str:
    """Return the `traceparent` for a row whose work another process does, or a blank text while tracing is off.

    Without a current span, a short one with this name begins the trace.
    """
    if not is_tracing():
        return ""
    current = current_traceparent()
    if current:
        return current
    with span(name):
        return current_traceparent()


@contextmanager
def without_trace_context() -> Iterator[None]:
    """Run a block without a current span, so that no library sends its context to another server."""
    if not is_tracing():
        yield
        return
    from opentelemetry.context import Context, attach, detach

    token = attach(Context())
    try:
        yield
    finally:
        detach(token)


def hash_owner(owner_id: str) -> str:
    """Return a text that is constant for an owner of this installation and does not name it."""
    return salted_hmac("agentcms.tracing.owner", owner_id, algorithm="sha256").hexdigest()[:16]


def trace_url(traceparent: str) -> str:
    """Return the URL of a trace in the tool of the operator, or a blank text if it is unknown or not sampled."""
    parts = traceparent.split("-")
    # The last bit says whether the trace was sampled. Any other is in no tool.
    if not settings.TRACE_URL_TEMPLATE or len(parts) != 4 or not int(parts[3], 16) & 1:
        return ""
    return settings.TRACE_URL_TEMPLATE.replace("{trace_id}", parts[1])


def shut_down() -> None:
    """Send the spans of this process that wait, for a second at most."""
    if is_tracing():
        from agentcms.tracing import tracer_provider

        tracer_provider.stop_provider()
