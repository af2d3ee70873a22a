"""API views of running agents, as the published client calls them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, NamedTuple, cast

from django.http import HttpResponse, StreamingHttpResponse
from pydantic import BaseModel, Field
from rest_framework.request import Request

from access_app.permissions import can_have_role, require_role
from access_app.role import Role, RoleRequired
from agentcms.api.parsers import json_object_body
from agentcms.api.query_params import MAX_NUMBER, QueryParams
from agentcms.api.responses import json_response
from agentcms.api.views import JSONView
from agentcms.errors import BadRequest
from agentcms.wire.unknown_names import UnknownName
from agents_app.api.idempotency import idempotency_key, takes_idempotency_key
from agents_app.api.lookups import agent_not_found
from agents_app.api.strict_requests import read_named_fields
from agents_app.configuration.schema import WIRE_CONFIG
from agents_app.models import Agent
from runs_app.api.agent_representation import agent_body
from runs_app.api.generate_response import answer_response
from runs_app.api.lookups import VERSION_PARAMETERS, get_requested_agent, get_run_of_agent
from runs_app.api.stream_responses import (
    EventStreamNegotiation,
    accepts_event_ids,
    requested_idle_time,
    stream_response,
)
from runs_app.approvals.auto_resume import resume_by_message
from runs_app.engine import reaper
from runs_app.engine.start.idempotency import CallKey, idempotency_id
from runs_app.engine.start.run import start_run
from runs_app.events import streams
from runs_app.events.decided_calls import chunks_after_decision, suspension_number
from runs_app.events.network import NetworkConverter
from runs_app.events.stream_chunks import StreamChunk
from runs_app.models import AgentRun
from runs_app.requests.body import GenerateCall, parse_call
from runs_app.requests.messages import parse_messages
from runs_app.requests.options import merge_options, parse_default_options
from runs_app.resolution import ResolvedAgent, stored_agents
from runs_app.response_cache.options import bust_cache

MAX_AGENTS_PER_PAGE = 1000
if TYPE_CHECKING:
    from django.contrib.auth.models import User

AUTO_RESUME_OPTION = "autoResumeSuspendedTools"
CACHE_BUST_HEADER = "HTTP_X_CACHE_BUST"


class StartedRun(NamedTuple):
    """A run, with the number after which its stream begins, and the chunks that come first.

    `unknown` are the unknown names of a request that continued the run. Otherwise they are warnings of the run.
    """

    run: AgentRun
    after: int = 0
    first_chunks: Sequence[StreamChunk] = ()
    unknown: Sequence[UnknownName] = ()


class RunnableAgentsView(JSONView):
    """List of the agents that the user may see, by ID."""

    def get(self, request: Request) -> HttpResponse:
        with QueryParams(request) as query:
            paging, partial = query.paging(MAX_AGENTS_PER_PAGE), query.boolean("partial")
            query.check_unknown_names()  # the response has agents by ID, and so no place for warnings
        agents = stored_agents.list(request.user, start=paging.start, stop=paging.stop)
        return json_response({agent.id: agent_body(agent, partial=partial) for agent in agents})


class RunnableAgentView(JSONView):
    """One agent with its tools, sub-agents and processors."""

    def get(self, request: Request, agent_id: str) -> HttpResponse:
        return json_response(agent_body(get_requested_agent(request, agent_id)))


class GenerateView(JSONView):
    """Run of an agent, with the complete answer as the response."""

    @takes_idempotency_key
    def post(self, request: Request, agent_id: str) -> HttpResponse:
        # The slot is acquired first: a run whose answer cannot be returned would still cost money.
        with streams.StreamSlot(request.user):
            # Nobody reads the answer before its end, so its first piece needs no commit of its own.
            started = start_requested_run(request, agent_id, ends_only=True)
            return answer_response(request.user, started.run.pk, agent_id, started.unknown)


class AnswerStreamView(JSONView):
    """Run of an agent, with a stream as the response. Closing the stream does not end the run."""

    is_network = False  # whether the response has the chunks of a network
    is_until_idle = False  # whether the stream goes on until the background tasks of the run have ended
    content_negotiation_class = EventStreamNegotiation

    @takes_idempotency_key
    def post(self, request: Request, agent_id: str) -> StreamingHttpResponse:
        slot = streams.StreamSlot(request.user)  # acquired first, as in GenerateView
        try:
            max_idle_ms = requested_idle_time(request, is_route=self.is_until_idle)
            run, after, first_chunks, _ = start_requested_run(request, agent_id)
            convert = NetworkConverter(run, after).convert if self.is_network else None
            numbered = accepts_event_ids(request)
            return stream_response(
                run.pk,
                after,
                slot,
                numbered=numbered,
                first_chunks=first_chunks,
                convert=convert,
                max_idle_ms=max_idle_ms,
            )
        except BaseException:  # no response will release the slot
            slot.release()
            raise


class IdleStreamView(AnswerStreamView):
    """Run of an agent, with a stream that stays open until the background tasks of the run have ended."""

    is_until_idle = True


class NetworkStreamView(AnswerStreamView):
    """Run of an agent, with the chunks of a network as the response."""

    is_network = True


class ObserveBody(BaseModel):
    """The body of `observe`: a run and the offset of its first event."""

    model_config = WIRE_CONFIG

    run_id: str
    offset: Annotated[int, Field(ge=0, le=MAX_NUMBER)] | None = None


class ObserveView(JSONView):
    """Stream of an existing run from an offset, which counts from 0."""

    content_negotiation_class = EventStreamNegotiation

    def post(self, request: Request, agent_id: str) -> StreamingHttpResponse:
        body, _ = read_named_fields(request, json_object_body(request), ObserveBody)
        run = get_run_of_agent(request, agent_id, body["run_id"])
        return readable_stream(request, run, body.get("offset") or 0)


class RecoverBody(BaseModel):
    """The body of `recover`."""

    model_config = WIRE_CONFIG

    run_id: str


class RecoverView(JSONView):
    """Stream of a run from its beginning. If no process executes a durable run, one is asked to continue it."""

    content_negotiation_class = EventStreamNegotiation

    def post(self, request: Request, agent_id: str) -> StreamingHttpResponse:
        body, _ = read_named_fields(request, json_object_body(request), RecoverBody)
        run = get_run_of_agent(request, agent_id, body["run_id"])
        if not can_have_role(request.user, Role.EDITOR):  # the role of the API key
            raise RoleRequired(Role.EDITOR, run.owner_id)
        reaper.recover_run(run)
        return readable_stream(request, run, 0)


def readable_stream(request: Request, run: AgentRun, after: int) -> StreamingHttpResponse:
    """Return a stream of the events after a number, as far as the user may see them."""
    redacted = not run.details_visible_to(request.user)
    slot = streams.StreamSlot(request.user)
    return stream_response(run.pk, after, slot, numbered=accepts_event_ids(request), redacted=redacted)


def start_requested_run(request: Request, agent_id: str, *, ends_only: bool = False) -> StartedRun:
    """Start a run with the body of a request, or answer the tool that waits in its conversation."""
    agent = get_requested_agent(request, agent_id)
    body = json_object_body(request)
    with QueryParams(request) as query:
        strict, unknown = query.boolean("strict"), query.unknown_names(*VERSION_PARAMETERS)
    call = parse_call(body, strict=strict, query_contexts=query.request_contexts)
    if strict and unknown:
        raise BadRequest("query parameters", [(name.field, name.message) for name in unknown])
    context = bust_cache(call.request_context) if request.META.get(CACHE_BUST_HEADER) == "1" else call.request_context
    call = call._replace(warnings=[*unknown, *call.warnings], request_context=context)
    key = idempotency_key(request) or ""
    if (resumed := resume_conversation(request, agent, call, key)) is not None:
        return resumed
    try:
        call_key = CallKey(key, request.path)
        return StartedRun(start_run(agent, user=request.user, key=call_key, ends_only=ends_only, **call._asdict()))
    except Agent.DoesNotExist:  # deleted meanwhile
        raise agent_not_found(agent_id) from None


def resume_conversation(request: Request, agent: ResolvedAgent, call: GenerateCall, key: str) -> StartedRun | None:
    """Return the run that waits in a conversation if the message answers its tool, or None."""
    defaults, _ = parse_default_options(agent.configuration.get("defaultOptions") or {})
    if not (call.thread and merge_options(defaults, call.options).get(AUTO_RESUME_OPTION)):
        return None
    require_role(request.user, Role.EDITOR, agent.owner_id)
    user = cast("User", request.user)  # anonymous users have no role
    key_id = idempotency_id(user, key) if key else None
    resumed = resume_by_message(agent, user, call.thread, call.resource, parse_messages(call.messages), key_id)
    if resumed is None:
        return None
    run, decided = resumed
    return StartedRun(run, suspension_number(run, decided), chunks_after_decision(run, decided), call.warnings)
