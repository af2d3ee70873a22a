"""Refusing what an open page sends after another user has signed in in the same browser."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.http import HttpRequest, HttpResponse

from agentcms.web.csrf import other_user_page
from agentcms.web.posted_fields import PAGE_USER_FIELD

SAFE_METHODS = ("GET", "HEAD", "OPTIONS", "TRACE")
PAGE_USER_HEADER = "X-Page-User"


class PageUserMiddleware:
    """Middleware that lets a page change something only as the user for whom it was rendered.

    The scripts of a page send its user with the CSRF token, which they read from a cookie. Without scripts, the form
    has the token of the page, which the new user's sign-in has made invalid.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        return self.get_response(request)

    def process_view(self, request: HttpRequest, *args: Any) -> HttpResponse | None:
        """Return the page of another user's form, after the check of the CSRF token."""
        user = getattr(request, "user", None)  # the API fast path skips the middleware that finds it, but not this
        if request.method in SAFE_METHODS or not user or not user.is_authenticated:
            return None
        sender = request.headers.get(PAGE_USER_HEADER) or request.POST.get(PAGE_USER_FIELD, "")
        return other_user_page(request) if sender not in ("", str(user.pk)) else None
