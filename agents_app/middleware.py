"""A change context around every request."""

from __future__ import annotations

from collections.abc import Callable

from django.http import HttpRequest, HttpResponse

from agents_app.editing.change_context import Source, change

SOURCES_BY_PREFIX = (("/api/", Source.API), ("/admin/", Source.ADMIN))


class ChangeContextMiddleware:
    """Middleware that records the source and the user of every change in a request."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        source = next(
            (source for prefix, source in SOURCES_BY_PREFIX if request.path_info.startswith(prefix)), Source.PAGE
        )
        with change(source=source, read_actor=lambda: getattr(request, "user", None)):
            return self.get_response(request)
