"""CORS headers: pages of CORS_ORIGINS may call the API with an API key. Cookies are never allowed."""

from __future__ import annotations

from collections.abc import Callable

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.utils.cache import patch_vary_headers

ALLOWED_METHODS = "GET, POST, PATCH, DELETE"
ALLOWED_HEADERS = "Authorization, Content-Type, If-Match, If-None-Match, Idempotency-Key, Last-Event-ID"
# A browser hides the other headers of a response from a page of another origin.
EXPOSED_HEADERS = "ETag, Retry-After, Idempotent-Replayed, X-Run-ID"


class CorsMiddleware:
    """Middleware that adds CORS headers below /api and answers preflight requests."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        if not settings.CORS_ORIGINS or not request.path_info.startswith("/api/"):
            return self.get_response(request)
        # Answered here: a browser sends no API key with it, so the view would refuse it.
        is_preflight = request.method == "OPTIONS" and "HTTP_ACCESS_CONTROL_REQUEST_METHOD" in request.META
        response = HttpResponse(status=204) if is_preflight else self.get_response(request)
        # Also without an origin, or a cache would give this response to pages of other origins.
        patch_vary_headers(response, ["Origin"])
        origin = request.META.get("HTTP_ORIGIN", "")
        if origin in settings.CORS_ORIGINS or "*" in settings.CORS_ORIGINS:
            response.headers["Access-Control-Allow-Origin"] = origin or "*"
            response.headers["Access-Control-Expose-Headers"] = EXPOSED_HEADERS
            if is_preflight:
                response.headers["Access-Control-Allow-Methods"] = ALLOWED_METHODS
                response.headers["Access-Control-Allow-Headers"] = ALLOWED_HEADERS
                # Seconds for which a browser need not send another preflight request.
                response.headers["Access-Control-Max-Age"] = "600"
        return response
