"""Listening to a run while it answers, and stopping it."""

from __future__ import annotations

from uuid import UUID

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect
from django.views.decorators.http import require_POST, require_safe

from agentcms.errors import Unavailable
from agentcms.web.dialogs import is_htmx
from agentcms.web.list_state import parse_number
from runs_app.api.lookups import stream_response
from runs_app.engine.start import cancel_run
from runs_app.events.streams import StreamSlot, TooManyStreams
from runs_app.views.lookups import get_run


@require_safe
@login_required
def stream(request: HttpRequest, run_id: UUID) -> HttpResponseBase:
    """The events as they happen, after the one that the browser heard last or that the address names."""
    run = get_run(request, run_id)
    heard = request.headers.get("Last-Event-ID") or request.GET.get("after", "")
    try:
        return stream_response(run.pk, parse_number(heard), StreamSlot(request.user), numbered=True)
    except (TooManyStreams, Unavailable) as error:  # the page tries again by itself
        return HttpResponse(error.error, "text/plain", error.status, headers=error.headers)


@require_POST
@login_required
def stop(request: HttpRequest, run_id: UUID) -> HttpResponse:
    """Ask a run to end where it is; whoever listens hears when it did."""
    run = get_run(request, run_id)
    cancel_run(run)
    return HttpResponse(status=204) if is_htmx(request) else redirect("runs:view", run.pk)
