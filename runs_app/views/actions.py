"""Views that stream and cancel a run."""

from __future__ import annotations

from uuid import UUID

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect
from django.views.decorators.http import require_POST, require_safe
from django_htmx.http import trigger_client_event

from agentcms.errors import Unavailable
from agentcms.ids import parse_whole_number
from agentcms.web.dialogs import is_htmx
from runs_app.api.stream_responses import stream_head_response, stream_response
from runs_app.engine import run_ends
from runs_app.events.streams import StreamSlot, TooManyStreams
from runs_app.models import AgentRun
from runs_app.views.lookups import get_run


@require_safe
@login_required
def stream(request: HttpRequest, run_id: UUID) -> HttpResponseBase:
    """Stream the events of a run after the last one that the browser has received."""
    run = get_run(request, run_id)
    if request.method == "HEAD":
        return stream_head_response()
    last_event = request.headers.get("Last-Event-ID") or request.GET.get("after", "")
    try:
        redacted = not run.details_visible_to(request.user)
        after, slot = parse_whole_number(last_event), StreamSlot(request.user)
        return stream_response(run.pk, after, slot, numbered=True, redacted=redacted)
    except (TooManyStreams, Unavailable) as error:  # the page retries
        return HttpResponse(error.error, "text/plain", error.status, headers=error.headers)


@require_POST
@login_required
def stop(request: HttpRequest, run_id: UUID) -> HttpResponse:
    """Request the cancellation of a run. Its stream reports the end."""
    run = get_run(request, run_id)
    run_ends.cancel_run(run.pk)
    if not is_htmx(request):
        return redirect("runs:view", run.pk)
    response = HttpResponse(status=204)
    if run.status == AgentRun.Status.SUSPENDED:  # it has no stream that would report the end
        trigger_client_event(response, "approval-decided", {"target": "body"})
    return response
