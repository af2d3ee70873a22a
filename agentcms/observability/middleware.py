"""What surrounds every request: its id, its figures, and the two probes that must answer whatever else is wrong."""

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

log = logging.getLogger("agentcms.requests")

METHODS = {"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"}
# Before hosts are checked, sessions read and plain HTTP redirected: a probe knows neither names nor certificates.
PROBES = {"/healthz": health.alive, "/readyz": health.ready}

Key = tuple[str, str, int]


class RequestLogMiddleware:
    """The outermost middleware; measured at about a hundredth of a millisecond per request."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response
        self.counters: dict[Key, tuple[Callable[[], None], Callable[[float], None]]] = {}

    def __call__(self, request: HttpRequest) -> HttpResponse:
        began = perf_counter()
        given = request.META.get("HTTP_X_REQUEST_ID", "")
        number = given if is_valid_request_id(given) else token_hex(8)
        request_id.set(number)
        probe = PROBES.get(request.path_info)
        response = probe(request) if probe else self.get_response(request)
        response.headers["X-Request-ID"] = number
        seconds = perf_counter() - began
        self.count(request, response.status_code, seconds)
        if settings.LOG_REQUESTS:
            log_request(request, response.status_code, seconds)
        return response

    def count(self, request: HttpRequest, status: int, seconds: float) -> None:
        method = request.method if request.method in METHODS else "other"  # anybody may invent more
        key = (method, route(request), status)
        # Looking a counter up by its labels costs more than counting.
        if (counters := self.counters.get(key)) is None:
            counters = self.counters[key] = counters_for(*key)
        add, observe = counters
        add()
        observe(seconds)


def route(request: HttpRequest) -> str:
    """The pattern of the address, so that there are as many figures as routes and not as many as agents."""
    if request.resolver_match is not None:
        return request.resolver_match.route
    return request.path_info[1:] if request.path_info in PROBES else "none"


def counters_for(method: str, route: str, status: int) -> tuple[Callable[[], None], Callable[[float], None]]:
    total = metrics.REQUESTS.labels(method, route, str(status))
    special: Any = None
    if status in (409, 412):
        special = metrics.CONFLICTS.labels(str(status))
    elif status == 429:
        special = metrics.THROTTLED.labels(route)

    def add() -> None:
        total.inc()
        if special is not None:
            special.inc()

    return add, metrics.REQUEST_SECONDS.labels(method, route).observe


def log_request(request: HttpRequest, status: int, seconds: float) -> None:
    """One line per request: who, what, how it went. The path has ids in it; the query, which may quote, stays out."""
    user = getattr(request, "user", None)
    facts = {
        "method": request.method,
        "path": request.path_info,
        "route": route(request),
        "status": status,
        "milliseconds": round(seconds * 1000, 2),
        "user": getattr(user, "pk", None),
    }
    log.info("%s %s %d", request.method, request.path_info, status, extra={"facts": facts})
