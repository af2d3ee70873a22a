"""Refusing what an open page sends after another user has signed in in the same browser."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.http import HttpRequest, HttpResponse

from agentcms.web.refused_forms import refuse_other_user

SAFE_METHODS = ("GET", "HEAD", "OPTIONS", "TRACE")


class PageUserMiddleware:
    """Middleware that lets a page change something only as the user for whom it was rendered.

    The scripts of a page send its user with the CSRF token, which they read from a cookie. Without scripts, the form
    has the token of the page, which the new user's sign-in has made invalid.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        return self.get_response(request)

    def process_view(self, request: HttpRequest, view: Any, *args: Any) -> HttpResponse | None:
        """Return the page of another user's form, after the check of the CSRF token.

        Views without that check are those of the API, and those that read an uploaded file, which check both.
        """
        if request.method in SAFE_METHODS or getattr(view, "csrf_exempt", False):
            return None
        return refuse_other_user(request)
