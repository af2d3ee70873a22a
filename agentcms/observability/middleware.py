"""Middleware for request ids, request metrics, the access log and the health probes."""

from __future__ import annotations

import logging
from collections.abc import Callable
from secrets import token_hex
from time import perf_counter
from typing import Any

from django.conf import settings
from django.http import HttpRequest, HttpResponse

from agentcms.logs import is_valid_request_id, request_id
from agentcms.observability import health, metrics
from agentcms.tracing.requests import METHODS, begin_request, end_request, loaded_user

log = logging.getLogger("agentcms.requests")

# Answered before the checks of hosts and HTTPS: a probe uses neither host names nor certificates.
PROBES = {"/healthz": health.alive, "/readyz": health.ready}

LabelValues = tuple[str, str, int]


class RequestLogMiddleware:
    """The outermost middleware: it sets the request id, answers probes, counts and logs requests."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response
        self.counters: dict[LabelValues, tuple[Callable[[], None], Callable[[float], None]]] = {}

    def __call__(self, request: HttpRequest) -> HttpResponse:
        started_at = perf_counter()
        client_id = request.META.get("HTTP_X_REQUEST_ID", "")
        # The ID of a client gets into the log and into a header, so only one of plain characters is taken.
        current_id = client_id if is_valid_request_id(client_id) else token_hex(8)
        request_id.set(current_id)
        probe = PROBES.get(request.path_info)
        response = probe(request) if probe else self.respond(request)
        response.headers["X-Request-ID"] = current_id
        seconds = perf_counter() - started_at
        self.count(request, response.status_code, seconds)
        if settings.LOG_REQUESTS:
            log_request(request, response.status_code, seconds)
        return response

    def respond(self, request: HttpRequest) -> HttpResponse:
        """Return the response, in a span if traces are on."""
        if not settings.TRACES_ENDPOINT:
            return self.get_response(request)
        begin_request(request)
        response = self.get_response(request)
        end_request(route(request), response.status_code)
        return response

    def count(self, request: HttpRequest, status: int, seconds: float) -> None:
        """Add a request to the metrics."""
        # Each method would be a new label.
        method = request.method if request.method in METHODS else "other"
        key = (method, route(request), status)
        # To find a counter by its labels costs more than to increment it.
        if (counters := self.counters.get(key)) is None:
            counters = self.counters[key] = counters_for(*key)
        add, observe = counters
        add()
        observe(seconds)


def route(request: HttpRequest) -> str:
    """Return the URL pattern of a request, so that there is one metric for each route and not for each agent."""
    if request.resolver_match is not None:
        return request.resolver_match.route
    return request.path_info[1:] if request.path_info in PROBES else "none"


def counters_for(method: str, route: str, status: int) -> tuple[Callable[[], None], Callable[[float], None]]:
    """Return a function that counts a request and one that observes its seconds."""
    requests = metrics.REQUESTS.labels(method, route, str(status))
    rejections: Any = None
    if status in (409, 412):
        rejections = metrics.CONFLICTS.labels(str(status))
    elif status == 429:
        rejections = metrics.THROTTLED.labels(route)

    def add() -> None:
        requests.inc()
        if rejections is not None:
            rejections.inc()

    return add, metrics.REQUEST_SECONDS.labels(method, route).observe


def log_request(request: HttpRequest, status: int, seconds: float) -> None:
    """Log a request. The query string is left out, because it may contain user data."""
    fields = {
        "method": request.method,
        "path": request.path_info,
        "route": route(request),
        "status": status,
        "milliseconds": round(seconds * 1000, 2),
        "user": getattr(loaded_user(request), "pk", None),
    }
    log.info("%s %s %d", request.method, request.path_info, status, extra={"fields": fields})
