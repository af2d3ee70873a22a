"""The error handlers of `agentcms.urls`: JSON below /api, a page elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Callable
from http import HTTPStatus

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.template.loader import render_to_string
from django.views import defaults
from django_htmx.http import HttpResponseClientRefresh, trigger_client_event

from agentcms.api.exceptions import api_error, with_full_stop
from agentcms.api.renderers import encode_json
from agentcms.errors import ApiError, Forbidden, NotFound
from agentcms.web.dialogs import is_htmx


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Render a 400."""
    error = api_error(exception) or ApiError(400, "The request cannot be read.", "bad_request")
    return refused_page(request, error)


def refused_page(request: HttpRequest, error: ApiError) -> HttpResponse:
    """Render a request that cannot be processed as it is, such as one with characters that no text may have."""
    # Without the request: its host may be unknown, and its session in a database that refused a value of it.
    context = {"number": error.status, "reason": with_full_stop(error.error)}
    return render_error(request, error, lambda: HttpResponse(render_to_string("400.html", context)))


def permission_denied(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Render a 403, or a 409 if the state forbids it. htmx gets the current page again, which shows the state."""
    error = api_error(exception) or Forbidden("You may not do this.")
    if error.status == HTTPStatus.CONFLICT:
        return conflict_page(request, error)
    response = render_error(request, error, lambda: defaults.permission_denied(request, exception))
    if is_htmx(request) and str(exception):
        detail = {"target": "body", "message": error.error, "kind": "fault"}
        return trigger_client_event(response, "permission-denied", detail)
    return response


def conflict_page(request: HttpRequest, error: ApiError) -> HttpResponse:
    """Render a 409. htmx gets the current page again, which shows the state, with the reason as a message."""
    if is_htmx(request):
        # An error of a middleware may come before that of the messages.
        messages.error(request, with_full_stop(error.error), fail_silently=True)
        return HttpResponseClientRefresh()
    return render_error(request, error, lambda: render(request, "409.html", {"reason": error.error}))


def page_not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Render a 404."""
    return render_error(request, NotFound(), lambda: defaults.page_not_found(request, exception))


def server_error(request: HttpRequest) -> HttpResponse:
    """Render a 500 for a bug, or a 503 where a middleware could not reach the database.

    A view raises a 404 or a 409 where somebody deletes a row while it runs, and a 400 where the database rejects a
    value.
    """
    # Django calls this handler within its `except` and passes no exception.
    error = api_error(sys.exception() or Exception())
    error = error or ApiError(500, "The server could not process the request. The error was logged.", "server_error")
    if error.status == HTTPStatus.NOT_FOUND:
        return page_not_found(request, error)
    if error.status == HTTPStatus.CONFLICT:
        return conflict_page(request, error)
    if error.status == HTTPStatus.BAD_REQUEST:
        return refused_page(request, error)
    template = "503.html" if error.status == HTTPStatus.SERVICE_UNAVAILABLE else "500.html"
    return render_error(request, error, lambda: defaults.server_error(request, template))


def render_error(request: HttpRequest, error: ApiError, page: Callable[[], HttpResponse]) -> HttpResponse:
    """Return the error as JSON below /api, else the page with the status and headers of the error."""
    if request.path == "/api" or request.path.startswith("/api/"):
        return HttpResponse(encode_json(error.body), "application/json", error.status, headers=error.headers)
    response = page()
    response.status_code = error.status
    for name, value in error.headers.items():
        response.headers[name] = value
    return response
