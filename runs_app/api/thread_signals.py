"""API views of signals and messages to threads, and of the stream of a thread."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from django.db.models import Case, When
from django.http import HttpResponse, StreamingHttpResponse
from rest_framework.request import Request

from access_app.permissions import require_role
from access_app.role import Role
from agentcms.api.parsers import json_object_body
from agentcms.api.query_params import QueryParams
from agentcms.api.responses import json_response
from agentcms.api.views import JSONView
from agentcms.errors import BadRequest, Conflict, NotFound
from agentcms.wire.json_types import JSONMapping, JSONObject
from agentcms.wire.unknown_names import UnknownName
from agents_app.api.idempotency import idempotent_by_reference, referring_response
from agents_app.api.idempotent_calls import idempotent_call
from agents_app.api.lookups import agent_not_found
from agents_app.api.strict_requests import warning_payloads
from agents_app.models import Agent
from memory_app.api.lookups import BodyFields, caller_of, get_referred_thread
from memory_app.api.strict_requests import checking_body
from memory_app.history.thread_signals import wire_signal
from memory_app.history.threads import get_thread, open_thread, thread_not_found
from memory_app.models import Thread
from runs_app.api.lookups import VERSION_PARAMETERS, get_requested_agent, get_run_of_agent
from runs_app.api.stream_responses import EventStreamNegotiation, stream_of_blocks
from runs_app.engine import run_ends
from runs_app.engine.start.memory import columns_of_agent
from runs_app.events import streams
from runs_app.events.thread_streams import ThreadStream
from runs_app.models import AgentRun
from runs_app.resolution import ResolvedAgent
from runs_app.thread_signals.bodies import (
    TARGET_NAMES,
    SignalCall,
    find_unknown_in_signal,
    parse_message_body,
    parse_signal_body,
)
from runs_app.thread_signals.sending import IfActive, SentSignal, send_signal

MAX_ABORT_SECONDS = 60
TARGET_MESSAGE = "Name a thread with threadId and resourceId, or a run with runId."


def respond_with_sent(request: Request, reference: JSONMapping, agent_id: str) -> HttpResponse:
    """Return the signal that a request has sent. Raise NotFound if it was deleted."""
    require_agent(request, agent_id)
    if reference.get("discarded"):
        return json_response(reference["discarded"])
    message = get_referred_thread(request, reference).messages.filter(key=reference["signal"]).first()
    if message is None:
        raise NotFound(f"Message with id {reference['signal']} not found")
    return json_response(sent_body(reference["run"], wire_signal(message)) | reference["more"])


class SignalsView(JSONView):
    """Signals to a thread: events that its agent should hear of."""

    @idempotent_by_reference(respond_with_sent)
    def post(self, request: Request, agent_id: str) -> HttpResponse:
        agent = require_agent(request, agent_id)
        call, unknown = read_signal(request, "signal", parse_signal_body)
        return send_to_thread(request, agent, call, unknown)


class SendMessageView(JSONView):
    """A message of a user, which joins the active run of a thread or wakes one."""

    @idempotent_by_reference(respond_with_sent)
    def post(self, request: Request, agent_id: str) -> HttpResponse:
        agent = require_agent(request, agent_id)
        call, unknown = read_signal(request, "message", parse_message_body)
        return send_to_thread(request, agent, call, unknown)


class QueueMessageView(JSONView):
    """A message of a user, which waits for a run of its own."""

    @idempotent_by_reference(respond_with_sent)
    def post(self, request: Request, agent_id: str) -> HttpResponse:
        agent = require_agent(request, agent_id)
        call, unknown = read_signal(request, "message", parse_message_body)
        # The body may still say that a message to an active thread is only stored, or discarded.
        if call.if_active == IfActive.DELIVER:
            call = call._replace(if_active=IfActive.QUEUE)
        return send_to_thread(request, agent, call, unknown)


def read_signal(
    request: Request, member: str, parse: Callable[[JSONObject, Sequence[str]], SignalCall]
) -> tuple[SignalCall, Sequence[UnknownName]]:
    """Return the signal in the member of a body, and the unknown names of the request."""
    body = json_object_body(request)
    with QueryParams(request) as query:
        contexts = query.request_contexts
    inside = find_unknown_in_signal(body)
    known = (member, *TARGET_NAMES)
    with checking_body(request, body, *known, parameters=VERSION_PARAMETERS, inside=inside) as names:
        call = parse(body, contexts)
    return call, names.unknown


def require_agent(request: Request, agent_id: str) -> ResolvedAgent:
    """Return the requested agent. Raise RoleRequired unless the caller may run it."""
    agent = get_requested_agent(request, agent_id)
    require_role(request.user, Role.EDITOR, agent.owner_id)
    return agent


def send_to_thread(
    request: Request, agent: ResolvedAgent, call: SignalCall, unknown: Sequence[UnknownName]
) -> HttpResponse:
    """Send a signal to the thread that a body names."""
    try:
        sent = send_signal(
            partial(find_signal_thread, request, agent, json_object_body(request)),
            call.signal,
            user=request.user,
            agent=agent,
            if_active=call.if_active,
            if_idle=call.if_idle,
            active_attributes=call.active_attributes,
            idle_attributes=call.idle_attributes,
            options=call.options,
        )
    except Agent.DoesNotExist:  # deleted meanwhile
        raise agent_not_found(agent.id) from None
    return sent_response(sent, call, warning_payloads(unknown))


def find_signal_thread(request: Request, agent: ResolvedAgent, body: JSONObject) -> Thread:
    """Return the thread that a body names by its ID, which creates it, or by one of its runs."""
    caller = caller_of(request)
    with BodyFields(body) as fields:
        key, resource = fields.thread_key("threadId"), fields.resource()
    run_id = body.get("runId")
    if key:
        caller.require_write()
        return open_thread(caller, key, resource, **columns_of_agent(agent))
    if not isinstance(run_id, str) or not run_id:
        raise BadRequest("request body", [("threadId", TARGET_MESSAGE)])
    run = get_run_of_agent(request, agent.id, run_id)
    thread = Thread.objects.for_caller(caller).filter(pk=run.thread_id).first() if run.thread_id else None
    if thread is None:
        raise Conflict(f"Run {run_id} has no thread that you can write to. Start it with a thread.", "no_thread")
    return thread


def sent_response(sent: SentSignal, call: SignalCall, more: JSONObject) -> HttpResponse:
    """Return the response to a signal, with `more` members. A discarded one has only its ID and its type."""
    run_id = str(sent.run_id or "")
    if sent.message is None:
        body = sent_body(run_id, {"id": call.signal.id, "type": call.signal.type}) | more
        return referring_response(body, {"discarded": body})
    reference = {"thread": sent.message.thread_id, "signal": sent.message.key, "run": run_id, "more": more}
    return referring_response(sent_body(run_id, wire_signal(sent.message)) | more, reference)


def sent_body(run_id: str, signal: JSONObject) -> JSONObject:
    """Return the body about a signal. `runId` is blank if no run will see it for now."""
    return {"accepted": True, "runId": run_id, "signal": signal}


class SubscribeView(JSONView):
    """Event stream of a thread: the active run and all later ones, and the signals that come."""

    content_negotiation_class = EventStreamNegotiation

    def post(self, request: Request, agent_id: str) -> StreamingHttpResponse:
        get_requested_agent(request, agent_id)
        body = json_object_body(request)
        known = ("threadId", "resourceId")
        with checking_body(request, body, *known, parameters=VERSION_PARAMETERS):  # only errors: it is a stream
            thread = get_named_thread(request, body)
        caller = caller_of(request)
        # Last, because nothing would release it after an error.
        slot = streams.StreamSlot(request.user)
        return stream_of_blocks(ThreadStream(thread, caller, slot))


def check_abort(request: Request, agent_id: str) -> None:
    """Raise ApiError if the caller may not stop the runs of the thread that the body names."""
    require_agent(request, agent_id)
    get_named_thread(request, json_object_body(request))


class AbortView(JSONView):
    """Cancellation of the active run of a thread."""

    @idempotent_call(check_abort, lambda: MAX_ABORT_SECONDS)
    def post(self, request: Request, agent_id: str) -> HttpResponse:
        require_agent(request, agent_id)
        body = json_object_body(request)
        known = ("threadId", "resourceId", "expectedRunId")
        with checking_body(request, body, *known, parameters=VERSION_PARAMETERS) as names:
            thread = get_named_thread(request, body)
        expected = body.get("expectedRunId")
        if not (expected is None or isinstance(expected, str)):
            raise BadRequest("request body", [("expectedRunId", "This must be the ID of a run.")])
        waits_last = Case(When(status=AgentRun.Status.SUSPENDED, then=1), default=0)
        runs = AgentRun.objects.unfinished().filter(thread=thread, parent=None).order_by(waits_last, "-created_at")
        # A client stops the run that it has seen, not one that has begun since.
        expected_ids = [run_id for run_id in runs.values_list("pk", flat=True) if expected in (None, "", str(run_id))]
        for run_id in expected_ids[:1]:
            run_ends.cancel_run(run_id)
        return json_response({"aborted": bool(expected_ids)} | warning_payloads(names.unknown))


def get_named_thread(request: Request, body: JSONObject) -> Thread:
    """Return the thread that a body names. Raise NotFound, or Forbidden for another resource."""
    caller = caller_of(request)
    with BodyFields(body) as fields:
        key, resource = fields.thread_key("threadId", required=True), fields.resource()
    if not key:
        raise thread_not_found(key)
    return get_thread(caller, key, resource)
