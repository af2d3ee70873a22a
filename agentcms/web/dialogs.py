"""Confirmation dialogs."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django_htmx.http import HttpResponseClientRedirect

from agentcms.web.template_context import TemplateContext


def render_dialog(
    request: HttpRequest, context: TemplateContext, status: int = 200, page: str = "components/act.html"
) -> HttpResponse:
    """Render the question before an action: a dialog for htmx, else the template `page`."""
    template = "components/_act.html" if is_htmx(request) else page
    response = render(request, template, {"nav": "agents", "action": request.path, **context}, status=status)
    # One URL has a page and a fragment: no cache may answer one with the other.
    response.headers["Vary"] = "HX-Request, Cookie"
    return response


def is_htmx(request: HttpRequest) -> bool:
    """Return True if htmx sent the request."""
    return bool(getattr(request, "htmx", False))


def redirect_page(request: HttpRequest, url: str) -> HttpResponse:
    """Return a redirect of the whole page, also for htmx."""
    return HttpResponseClientRedirect(url) if is_htmx(request) else redirect(url)
