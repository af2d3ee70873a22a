"""A Content-Security-Policy with a nonce for each answer, under the setting names of Django 6."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING

from django.conf import settings
from django.utils.functional import SimpleLazyObject

if TYPE_CHECKING:  # the settings import this module, before there are any
    from django.http import HttpRequest, HttpResponse

NONE, SELF, NONCE = "'none'", "'self'", "<CSP_NONCE>"

# What is no page runs nothing, and needs no nonce.
JSON_POLICY = "default-src 'none'; frame-ancestors 'none'"

Policy = Mapping[str, Iterable[str]]


class ContentSecurityPolicyMiddleware:
    """Sends `SECURE_CSP`; below a prefix of `SECURE_CSP_BELOW`, with the directives named there in their place."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        request.csp_nonce = SimpleLazyObject(lambda: secrets.token_urlsafe(16))  # type: ignore[attr-defined]
        response = self.get_response(request)
        is_data = response.headers.get("Content-Type") == "application/json"
        policy = JSON_POLICY if is_data else format_policy(policy_for(request.path), request)
        response.headers.setdefault("Content-Security-Policy", policy)
        return response


def policy_for(path: str) -> Policy:
    below: Mapping[str, Policy] = settings.SECURE_CSP_BELOW
    special = next((directives for prefix, directives in below.items() if path.startswith(prefix)), {})
    return {**settings.SECURE_CSP, **special}


def format_policy(policy: Policy, request: HttpRequest) -> str:
    nonce = f"'nonce-{request.csp_nonce}'"  # type: ignore[attr-defined]
    return "; ".join(
        " ".join([directive, *(nonce if source == NONCE else source for source in sources)])
        for directive, sources in policy.items()
    )


def csp(request: HttpRequest) -> dict[str, object]:
    """For templates: `csp_nonce`."""
    return {"csp_nonce": getattr(request, "csp_nonce", "")}
