"""Answers to what never reaches a view: JSON below /api, a page elsewhere. `agentcms.urls` names them."""

from __future__ import annotations

import sys
from collections.abc import Callable

from django.http import HttpRequest, HttpResponse
from django.views import defaults

from agentcms.api.exceptions import api_error
from agentcms.api.renderers import encode_json
from agentcms.errors import ApiError, Forbidden, NotFound


def handler400(request: HttpRequest, exception: Exception) -> HttpResponse:
    error = api_error(exception) or ApiError(400, "The request cannot be read.", "bad_request")
    return render_error(request, error, lambda: defaults.bad_request(request, exception))


def handler403(request: HttpRequest, exception: Exception) -> HttpResponse:
    error = api_error(exception) or Forbidden("You may not do this.")
    return render_error(request, error, lambda: defaults.permission_denied(request, exception))


def handler404(request: HttpRequest, exception: Exception) -> HttpResponse:
    return render_error(request, NotFound(), lambda: defaults.page_not_found(request, exception))


def handler500(request: HttpRequest) -> HttpResponse:
    """A bug, or a database that a middleware could not reach, which is a 503."""
    error = api_error(sys.exception() or Exception())
    error = error or ApiError(500, "The server failed to answer; the failure is logged.", "server_error")
    return render_error(request, error, lambda: defaults.server_error(request))


def render_error(request: HttpRequest, error: ApiError, page: Callable[[], HttpResponse]) -> HttpResponse:
    """The error as JSON below /api, else the page with the error's status and headers."""
    if request.path == "/api" or request.path.startswith("/api/"):
        return HttpResponse(encode_json(error.body), "application/json", error.status, headers=error.headers)
    response = page()
    response.status_code = error.status
    for name, value in error.headers.items():
        response.headers[name] = value
    return response
