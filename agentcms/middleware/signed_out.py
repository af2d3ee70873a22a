"""The page for a form whose user has been signed out since it was opened."""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import urlsplit

from django.conf import settings
from django.contrib.auth.views import redirect_to_login
from django.http import HttpRequest, HttpResponse
from django.shortcuts import resolve_url
from django.urls import reverse

from agentcms.web.dialogs import is_htmx
from agentcms.web.refused_forms import form_page, signed_out_page, typed_texts


class SignedOutPageMiddleware:
    """Middleware that shows what was typed in place of the redirect to the sign-in page, which would lose it.

    Without typed text, the sign-in page leads back to the page with the form: the address of a form may answer no GET.
    For htmx, whose form stays in the page, the redirect stays.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self.get_response(request)
        if request.method != "POST" or is_htmx(request) or not is_sign_in_redirect(response):
            return response
        if request.user.is_authenticated:
            return response
        return signed_out_page(request) if typed_texts(request) else redirect_to_login(form_page(request))


def is_sign_in_redirect(response: HttpResponse) -> bool:
    """Return whether a response asks the browser to sign in and come back. After a sign-out it does not."""
    if response.status_code != 302:
        return False
    url = urlsplit(response.headers["Location"])
    # The admin has a login URL of its own, which redirects to the page of LOGIN_URL.
    return url.path in (resolve_url(settings.LOGIN_URL), reverse("admin:login")) and "next=" in url.query
