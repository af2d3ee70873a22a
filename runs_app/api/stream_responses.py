"""Responses that stream events: their headers, where they begin, and how long they stay open."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any
from uuid import UUID

from django.http import HttpResponse, StreamingHttpResponse
from rest_framework.negotiation import DefaultContentNegotiation
from rest_framework.request import Request

from agentcms.api.parsers import json_object_body
from agentcms.errors import ApiError
from agents_app.configuration.schema import ConfigError, Issue
from runs_app.background.task_streams import DEFAULT_MAX_IDLE_MS, follow_until_idle
from runs_app.events.stream_chunks import SUSPENDED_TYPE, StreamChunk
from runs_app.events.streams import Batch, ChunkConverter, EventStream, StreamSlot

EVENT_STREAM = "text/event-stream"
MAX_IDLE_MS = 60 * 60 * 1000
UNTIL_IDLE_MESSAGE = 'This must be true, false, or an object such as {"maxIdleMs": 60000}.'
STREAM_HEADERS = {"Cache-Control": "no-cache, no-transform", "X-Accel-Buffering": "no"}


class EventStreamNegotiation(DefaultContentNegotiation):
    """Content negotiation that accepts requests for event streams. Errors are JSON."""

    def select_renderer(self, request: Request, renderers: Any, format_suffix: str | None = None) -> object:
        if EVENT_STREAM in request.META.get("HTTP_ACCEPT", ""):
            return renderers[0], renderers[0].media_type
        return super().select_renderer(request, renderers, format_suffix)


def accepts_event_ids(request: Request) -> bool:
    """Return True for readers of event streams. The published client does not accept event ids."""
    return EVENT_STREAM in request.META.get("HTTP_ACCEPT", "") or "HTTP_LAST_EVENT_ID" in request.META


def last_event_id(request: Request, default: int) -> int:
    """Return the number of the last event that the reader has received."""
    text = request.META.get("HTTP_LAST_EVENT_ID", "").strip()
    if not text:
        return default
    # Nine digits fit the column of the numbers.
    if not re.fullmatch(r"[0-9]{1,9}", text):
        raise ApiError(400, "Last-Event-ID must be the number of an event of the stream.", "invalid_header")
    return int(text)


def stream_response(
    run_id: UUID,
    after: int,
    slot: StreamSlot,
    *,
    numbered: bool,
    redacted: bool = False,
    first_chunks: Sequence[StreamChunk] = (),
    convert: ChunkConverter | None = None,
    max_idle_ms: int | None = None,
) -> StreamingHttpResponse:
    """Return a response that streams the events of a run. The headers disable buffering in proxies.

    With `max_idle_ms`, the stream goes on until no background task is left, or until nothing happens for that long.
    """
    batches = special_batches(run_id, after, first_chunks, max_idle_ms)
    stream = EventStream(
        run_id,
        after,
        slot,
        numbered=numbered and batches is None,  # the chunks of several runs have no common numbers
        redacted=redacted,
        first_chunks=first_chunks,
        convert=convert,
        batches=batches,
    )
    response = stream_of_blocks(stream)
    response["X-Run-ID"] = str(run_id)
    return response


def special_batches(
    run_id: UUID, after: int, first_chunks: Sequence[StreamChunk], max_idle_ms: int | None
) -> Iterator[Batch] | None:
    """Return what a stream sends after its first chunks, if that is not simply the events of the run."""
    if max_idle_ms is not None:
        return follow_until_idle(run_id, after, max_idle_ms / 1000)
    if first_chunks and first_chunks[-1]["type"] == SUSPENDED_TYPE:
        # The run may have gone on already: the stream of whoever has decided its other calls has these events.
        return iter(())
    return None


def stream_of_blocks(blocks: Iterable[bytes]) -> StreamingHttpResponse:
    """Return a response with server-sent events."""
    return StreamingHttpResponse(blocks, content_type=EVENT_STREAM, headers=STREAM_HEADERS)


def stream_head_response() -> HttpResponse:
    """Return the response to HEAD: the headers of a stream. An open stream would block a thread until its end."""
    return HttpResponse(content_type=EVENT_STREAM, headers=STREAM_HEADERS)


def requested_idle_time(request: Request, *, is_route: bool) -> int | None:
    """Return the milliseconds after which an idle stream ends, or None for a stream that ends with its run."""
    body = json_object_body(request)
    choice = is_route if body.get("untilIdle") is None else body["untilIdle"]
    if not isinstance(choice, bool | dict):
        raise ConfigError([Issue("untilIdle", UNTIL_IDLE_MESSAGE)])
    if choice is False:
        return None
    path, options = ("untilIdle.maxIdleMs", choice) if isinstance(choice, dict) else ("maxIdleMs", body)
    limit = options.get("maxIdleMs")
    if limit is None:
        return DEFAULT_MAX_IDLE_MS
    if isinstance(limit, bool) or not isinstance(limit, int) or not 0 < limit <= MAX_IDLE_MS:
        message = f"This must be a whole number of milliseconds, from 1 to {MAX_IDLE_MS}."
        raise ConfigError([Issue(path, message)])
    return limit
