"""Confirmation dialogs."""

from __future__ import annotations

from datetime import datetime
from typing import Protocol

from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.cache import patch_vary_headers
from django_htmx.http import HttpResponseClientRedirect

from agentcms.api.exceptions import api_error
from agentcms.errors import ApiError, Conflict
from agentcms.web.list_state import encode_query
from agentcms.web.template_context import TemplateContext

REPLACED_MESSAGE = (
    "It was deleted in the meantime, and this one was created with its ID. "
    "Nothing was changed. Look at it before you try again."
)


class RowReplaced(PermissionDenied):
    """The row of a dialog or an Undo button was deleted since it was shown, and another one has its ID."""


@api_error.register
def _row_replaced(exception: RowReplaced) -> ApiError:
    return Conflict(str(exception), "replaced")


class StampedRow(Protocol):
    """A row whose time of creation tells it from others that had its ID before."""

    created_at: datetime


def row_stamp(row: StampedRow) -> str:
    """Return what the form of a dialog sends as `row_stamp`, so that it does nothing to another row of the same ID."""
    return row.created_at.isoformat()


def sent_value(request: HttpRequest, name: str, default: str) -> str:
    """Return what a form, or the URL of an Undo button, sends by this name. Without both, return the default."""
    return request.POST.get(name, request.GET.get(name, default))


def replaced_reason(request: HttpRequest, row: StampedRow) -> str:
    """Return that a dialog or an Undo button was shown for another row of the same ID, or a blank text."""
    stamp = row_stamp(row)
    return REPLACED_MESSAGE if sent_value(request, "row_stamp", stamp) != stamp else ""


def reject_replaced_row(request: HttpRequest, row: StampedRow) -> None:
    """Raise RowReplaced if an Undo button was shown for another row of the same ID."""
    if reason := replaced_reason(request, row):
        raise RowReplaced(reason)


def with_row_stamp(url: str, row: StampedRow) -> str:
    """Return the URL of an Undo button, which does nothing to another row that has the ID of this one by then."""
    return f"{url}?{encode_query(row_stamp=row_stamp(row))}"


def render_dialog(
    request: HttpRequest, context: TemplateContext, status: int = 200, page: str = "components/act.html"
) -> HttpResponse:
    """Render the question before an action: a dialog for htmx, else the template `page`."""
    template = "components/_act.html" if is_htmx(request) else page
    response = render(request, template, {"nav": "agents", "action": request.path, **context}, status=status)
    vary_on_htmx(response)
    return response


def is_htmx(request: HttpRequest) -> bool:
    """Return True if htmx sent the request."""
    return bool(getattr(request, "htmx", False))


def vary_on_htmx(response: HttpResponse) -> None:
    """Let caches tell the page of a URL from its fragment for htmx, so that none answers one with the other."""
    patch_vary_headers(response, ["HX-Request"])


def redirect_page(request: HttpRequest, url: str) -> HttpResponse:
    """Return a redirect of the whole page, also for htmx."""
    return HttpResponseClientRedirect(url) if is_htmx(request) else redirect(url)
