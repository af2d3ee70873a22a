"""What the API's views of agents and runs share: find, and answer as a stream."""

from __future__ import annotations

import re
from typing import Any
from uuid import UUID

from django.http import StreamingHttpResponse
from rest_framework.negotiation import DefaultContentNegotiation
from rest_framework.request import Request

from agentcms.errors import ApiError, NotFound
from agentcms.ids import parse_uuid
from runs_app.events.streams import EventStream, StreamSlot
from runs_app.models import AgentRun

EVENT_STREAM = "text/event-stream"


class EventStreamNegotiation(DefaultContentNegotiation):
    """Who asks for an event stream gets one; errors are JSON all the same."""

    def select_renderer(self, request: Request, renderers: Any, format_suffix: str | None = None) -> Any:
        if EVENT_STREAM in request.META.get("HTTP_ACCEPT", ""):
            return renderers[0], renderers[0].media_type
        return super().select_renderer(request, renderers, format_suffix)


def get_readable_run(request: Request, run_id: str) -> AgentRun:
    """A run that the caller may read; any other does not exist."""
    known: Any = parse_uuid(run_id)  # no run has the id None
    run = AgentRun.objects.for_user(request.user).select_related("thread").filter(pk=known).first()
    if run is None:
        raise run_not_found(run_id)
    return run


def run_not_found(run_id: str) -> NotFound:
    return NotFound(f"Run with id {run_id} not found")


def accepts_event_ids(request: Request) -> bool:
    """Whether the reader is one of events and not the published client, which takes blocks for JSON."""
    return EVENT_STREAM in request.META.get("HTTP_ACCEPT", "") or "HTTP_LAST_EVENT_ID" in request.META


def last_event_id(request: Request, default: int = 0) -> int:
    """The number of the last event that the reader has."""
    text = request.META.get("HTTP_LAST_EVENT_ID", "").strip()
    if not text:
        return default
    if not re.fullmatch(r"[0-9]{1,9}", text):
        raise ApiError(400, "Last-Event-ID is the number of an event, as the stream gave it.", "invalid_header")
    return int(text)


def stream_response(run_id: UUID, after: int, slot: StreamSlot, *, numbered: bool) -> StreamingHttpResponse:
    """The events of a run as they come. Proxies that keep answers back are asked not to."""
    return StreamingHttpResponse(
        EventStream(run_id, after, slot, numbered=numbered),
        content_type=EVENT_STREAM,
        headers={"Cache-Control": "no-cache, no-transform", "X-Accel-Buffering": "no", "X-Run-ID": str(run_id)},
    )
