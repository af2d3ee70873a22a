"""Lookups and streaming responses for the API views of agents and runs."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any
from uuid import UUID

from django.http import StreamingHttpResponse
from rest_framework.negotiation import DefaultContentNegotiation
from rest_framework.request import Request

from agentcms.api.query_params import QueryParams
from agentcms.errors import ApiError, NotFound
from agentcms.ids import parse_uuid
from agents_app.api.lookups import agent_not_found, version_not_found
from agents_app.models import Agent
from runs_app.background.streams import follow_until_idle
from runs_app.events.stream_chunks import StreamChunk
from runs_app.events.streams import ChunkConverter, EventStream, StreamSlot
from runs_app.models import AgentRun, PendingCall
from runs_app.resolution import ResolvedAgent, stored_agents
from versions_app.models import AgentVersion

EVENT_STREAM = "text/event-stream"


class EventStreamNegotiation(DefaultContentNegotiation):
    """Content negotiation that accepts requests for event streams. Errors are JSON."""

    def select_renderer(self, request: Request, renderers: Any, format_suffix: str | None = None) -> object:
        if EVENT_STREAM in request.META.get("HTTP_ACCEPT", ""):
            return renderers[0], renderers[0].media_type
        return super().select_renderer(request, renderers, format_suffix)


def get_requested_agent(request: Request, agent_id: str) -> ResolvedAgent:
    """Return the agent at the version of the query parameters: by ID, number or status."""
    with QueryParams(request) as query:
        status = query.choice("status", ("published", "draft"), "published")
        text, number = query.text("versionId"), query.integer("versionNumber", 0, 1)
    version_id: UUID | None = parse_uuid(text) if text else None
    try:
        if text and version_id is None:
            stored_agents.get(agent_id, user=request.user)  # a missing agent is reported before a missing version
            raise AgentVersion.DoesNotExist
        return stored_agents.get(
            agent_id, user=request.user, version_id=version_id, version_number=number or None, status=status
        )
    except Agent.DoesNotExist:
        raise agent_not_found(agent_id) from None
    except AgentVersion.DoesNotExist:
        raise version_not_found(agent_id, text or str(number)) from None


def get_readable_run(request: Request, run_id: str) -> AgentRun:
    """Return a run that the user may read. Raise NotFound for any other."""
    uuid = parse_uuid(run_id)
    runs = AgentRun.objects.for_user(request.user).with_roles(request.user).select_related("thread")
    run = runs.filter(pk=uuid).first() if uuid else None
    if run is None:
        raise run_not_found(run_id)
    return run


def get_run_of_agent(request: Request, agent_id: str, run_id: str) -> AgentRun:
    """Return a run of this agent that the user may read. Raise NotFound for any other."""
    run = get_readable_run(request, run_id)
    if run.agent_key != agent_id:
        raise run_not_found(run_id)
    return run


def run_not_found(run_id: str) -> NotFound:
    return NotFound(f"Run with id {run_id} not found")


def get_readable_call(request: Request, approval_id: str) -> PendingCall:
    """Return a call that the user may read. Raise NotFound for any other."""
    uuid = parse_uuid(approval_id)
    call = PendingCall.objects.readable_by(request.user).filter(pk=uuid).first() if uuid else None
    if call is None:
        raise NotFound(f"Approval with id {approval_id} not found")
    return call


def accepts_event_ids(request: Request) -> bool:
    """Return True for readers of event streams. The published client does not accept event ids."""
    return EVENT_STREAM in request.META.get("HTTP_ACCEPT", "") or "HTTP_LAST_EVENT_ID" in request.META


def last_event_id(request: Request, default: int = 0) -> int:
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
    batches = None if max_idle_ms is None else follow_until_idle(run_id, after, max_idle_ms / 1000)
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


def stream_of_blocks(blocks: Iterable[bytes]) -> StreamingHttpResponse:
    """Return a response with server-sent events."""
    headers = {"Cache-Control": "no-cache, no-transform", "X-Accel-Buffering": "no"}
    return StreamingHttpResponse(blocks, content_type=EVENT_STREAM, headers=headers)
