"""The span of the current HTTP request.

It is opened when it is first needed, or at the end of the request: only then it is known whether the caller is
authenticated, and only the `traceparent` of an authenticated caller is used.
"""

from __future__ import annotations

import time
from contextvars import ContextVar, Token
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from django.utils.functional import SimpleLazyObject

if TYPE_CHECKING:
    from django.http import HttpRequest
    from opentelemetry.context import Context
    from opentelemetry.trace import Span

HEADER = "HTTP_TRACEPARENT"
SERVER_ERROR = 500
# Clients may send any word as a method.
METHODS = {"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"}
OTHER_METHOD = "_OTHER"  # of the conventions of OpenTelemetry


@dataclass
class RequestSpan:
    """A request with its span, once that is open."""

    request: HttpRequest
    started_at: int = field(default_factory=time.time_ns)
    span: Span | None = None
    token: Token[Context] | None = None

    @property
    def method(self) -> str:
        """The method, or `_OTHER` for one that no view has."""
        method = self.request.method or ""
        return method if method in METHODS else OTHER_METHOD

    @property
    def traceparent(self) -> str:
        """The `traceparent` of the caller, or a blank text unless the caller is authenticated."""
        user = loaded_user(self.request)
        return str(self.request.META.get(HEADER, "")) if user is not None and user.is_authenticated else ""


_current: ContextVar[RequestSpan | None] = ContextVar("request_span", default=None)


def loaded_user(request: HttpRequest) -> Any:
    """Return the user of a request if something has used it, or else None.

    Django reads the user of a page from the database at its first use. In an outage that would wait for a connection
    and fail once more, after the page of the error was made.
    """
    user = getattr(request, "user", None)
    # Django's function `get_user` sets the attribute once it has read the user.
    is_loaded = not isinstance(user, SimpleLazyObject) or hasattr(request, "_cached_user")
    return user if is_loaded else None


def begin_request(request: HttpRequest) -> None:
    """Note the request that this thread handles."""
    _current.set(RequestSpan(request))


def open_request_span() -> None:
    """Open the span of the current request, as the current one of this thread, unless it is open."""
    current = _current.get()
    if current is None or current.span is not None:
        return
    from opentelemetry.context import Context, attach
    from opentelemetry.trace import SpanKind, set_span_in_context

    from agentcms.tracing import tracer_provider

    request = current.request
    attributes = {"http.request.method": current.method, "url.scheme": request.scheme or ""}
    parent = tracer_provider.context_of(current.traceparent) if current.traceparent else Context()
    current.span = tracer_provider.get_tracer().start_span(
        current.method, parent, SpanKind.SERVER, attributes, start_time=current.started_at
    )
    current.token = attach(set_span_in_context(current.span, parent))


def end_request(route: str, status: int) -> None:
    """End the span of the current request, which is named by its route: an address may contain words of users."""
    open_request_span()
    current = _current.get()
    _current.set(None)
    if current is None or current.span is None or current.token is None:
        return
    from opentelemetry.context import detach
    from opentelemetry.trace import StatusCode

    current.span.update_name(f"{current.method} {route}")
    current.span.set_attributes({"http.route": route, "http.response.status_code": status})
    if status >= SERVER_ERROR:
        current.span.set_status(StatusCode.ERROR)
    current.span.end()
    detach(current.token)
