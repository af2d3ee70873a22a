"""The response to a form without a valid CSRF token, such as one that was open for very long, or of another user."""

from __future__ import annotations

from urllib.parse import urlsplit

from django.conf import settings
from django.contrib.auth.views import redirect_to_login
from django.core.exceptions import BadRequest, SuspiciousOperation
from django.http import HttpRequest, HttpResponse, UnreadablePostError
from django.http.multipartparser import MultiPartParserError
from django.middleware.csrf import get_token
from django.shortcuts import render, resolve_url
from django_htmx.http import trigger_client_event

from agentcms.api.renderers import encode_json
from agentcms.errors import CsrfFailed
from agentcms.web.dialogs import is_htmx
from agentcms.web.posted_fields import PAGE_USER_FIELD, posted_fields

# How the reason for a form of another site begins.
FOREIGN_REASONS = ("Origin checking failed", "Referer checking failed")
# Of fields whose values are stored encrypted and never displayed.
SECRET_WORDS = ("password", "secret", "token", "key", "header", "environment")
# Other fields with one word have choices, numbers and the state of the page.
FIELDS_OF_A_WORD = {
    *("id", "name", "title", "description", "instructions", "message", "reason", "text", "username", "url", "tags"),
    *("input", "ground_truth", "comment"),
}
PAGE_USER_HEADER = "X-Page-User"
TOO_OLD_MESSAGE = "This page was open for too long. Nothing was changed. Try again."


def csrf_failed(request: HttpRequest, reason: str = "") -> HttpResponse:
    """Say that the form is too old, or that the user is signed out, and show what was typed.

    The response has a new token: what a page sends again by htmx is then accepted.
    """
    get_token(request)
    if request.path.startswith("/api/"):
        error = CsrfFailed(f"CSRF Failed: {reason}")
        return HttpResponse(encode_json(error.body), "application/json", error.status)
    if is_htmx(request):
        if not request.user.is_authenticated:
            return redirect_to_login(form_page(request))
        detail = {"target": "body", "message": TOO_OLD_MESSAGE, "kind": "fault"}
        return trigger_client_event(HttpResponse(status=403), "page-too-old", detail)
    # Texts that another site has sent are not shown: the page must not speak for it.
    is_foreign = reason.startswith(FOREIGN_REASONS)
    context = {
        "is_foreign": is_foreign,
        "is_sign_in": request.path == resolve_url(settings.LOGIN_URL),
        "texts": [] if is_foreign else typed_texts(request),
        "back": form_page(request),
    }
    return render(request, "403_csrf.html", context, status=403)


def signed_out_page(request: HttpRequest) -> HttpResponse:
    """Say that the user is signed out, and show what was typed."""
    context = {"texts": typed_texts(request), "back": form_page(request)}
    return render(request, "403_csrf.html", context, status=403)


def refuse_other_user(request: HttpRequest) -> HttpResponse | None:
    """Return a page that refuses the form of a page which was rendered for another user, or None."""
    if not request.user.is_authenticated:
        return None
    page_user = request.headers.get(PAGE_USER_HEADER) or request.POST.get(PAGE_USER_FIELD, "")
    return other_user_page(request) if page_user not in ("", str(request.user.pk)) else None


def other_user_page(request: HttpRequest) -> HttpResponse:
    """Say that another user has signed in since the page was opened, and show what was typed."""
    if is_htmx(request):
        message = (
            f"Nothing was changed: {request.user.get_username()} has signed in in this browser since you opened this "
            "page. Sign in again in another tab and repeat it, or reload the page."
        )
        detail = {"target": "body", "message": message, "kind": "fault"}
        return trigger_client_event(HttpResponse(status=403), "user-changed", detail)
    context = {"is_other_user": True, "texts": typed_texts(request), "back": form_page(request)}
    return render(request, "403_csrf.html", context, status=403)


def form_page(request: HttpRequest) -> str:
    """Return the path of the page with the form, or the first page."""
    try:
        url = urlsplit(request.headers.get("Referer", ""))
    except ValueError:  # such as http://[
        return resolve_url(settings.LOGIN_REDIRECT_URL)
    # The header comes from the browser. A link to another site, or one that begins with //, must not get on the page.
    if url.netloc != request.get_host() or not url.path.startswith("/") or url.path.startswith("//"):
        return resolve_url(settings.LOGIN_REDIRECT_URL)
    return f"{url.path}?{url.query}" if url.query else url.path


def typed_texts(request: HttpRequest) -> list[tuple[str, str]]:
    """Return labels and texts of the submitted fields that people type, without secrets, or none of invalid data."""
    try:
        fields = posted_fields(request)
    except (BadRequest, SuspiciousOperation, MultiPartParserError, UnreadablePostError):
        return []
    return [
        (name.replace("_", " ").replace("-", " ").capitalize(), text)
        for name, text in fields
        if text.strip() and (name in FIELDS_OF_A_WORD or len(text.split()) > 1)
        if not any(word in name.lower() for word in SECRET_WORDS)
    ]
