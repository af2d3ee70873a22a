"""Content-Security-Policy with a nonce for each response. The settings have the names of Django 6."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING

from django.conf import settings
from django.utils.functional import SimpleLazyObject

if TYPE_CHECKING:  # the settings import this module, so django.http cannot be loaded here
    from django.http import HttpRequest, HttpResponse

NONE, SELF, NONCE = "'none'", "'self'", "<CSP_NONCE>"

# A policy applies to documents. These are none, and a first visit loads thirty of them: the short policy saves 6 kB.
NO_DOCUMENTS = ("application/json", "text/css", "text/javascript", "font/")
SHORT_POLICY = "default-src 'none'; frame-ancestors 'none'"

Directives = Mapping[str, Iterable[str]]


class ContentSecurityPolicyMiddleware:
    """Middleware that sends `SECURE_CSP`. `SECURE_CSP_BELOW` replaces directives below a prefix of the path."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        request.csp_nonce = SimpleLazyObject(lambda: secrets.token_urlsafe(16))  # type: ignore[attr-defined]
        response = self.get_response(request)
        is_document = not response.headers.get("Content-Type", "").startswith(NO_DOCUMENTS)
        policy = format_policy(policy_for(request.path), request) if is_document else SHORT_POLICY
        response.headers.setdefault("Content-Security-Policy", policy)
        return response


def policy_for(path: str) -> Directives:
    """Return the policy of a path."""
    by_prefix: Mapping[str, Directives] = settings.SECURE_CSP_BELOW
    replaced = next((directives for prefix, directives in by_prefix.items() if path.startswith(prefix)), {})
    return {**settings.SECURE_CSP, **replaced}


def format_policy(policy: Directives, request: HttpRequest) -> str:
    """Return the header value of a policy with the nonce of the request."""
    nonce = f"'nonce-{request.csp_nonce}'"  # type: ignore[attr-defined]
    return "; ".join(
        " ".join([directive, *(nonce if source == NONCE else source for source in sources)])
        for directive, sources in policy.items()
    )


def csp(request: HttpRequest) -> dict[str, object]:
    """Return the context of templates: `csp_nonce`."""
    return {"csp_nonce": getattr(request, "csp_nonce", "")}
